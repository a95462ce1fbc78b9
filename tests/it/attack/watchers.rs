use outbox_core::{
    ErrorClass, HandlerError, Monitor, Relay, RelayConfig, Router, Status,
    testing::{FaultPoint, MemoryStore, Stored, TestRelay},
};
use outbox_seaorm::{Outbox, SeaOrmStore, TableNames, Transactions, Tx, migrate};
use outbox_tests::{
    events::{OrderPlaced, placed, placed_many},
    running::{Running, fast},
    wait::until,
};
use sea_orm::{ConnectionTrait, Database, TransactionTrait};
use std::{
    panic::panic_any,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

/// A panic's value that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        panic!("the value of a panic panicked when it was dropped");
    }
}

fn accepting() -> Router {
    Router::builder()
        .on("tests.accept", |_: OrderPlaced| async { Ok::<(), HandlerError>(()) })
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_observer_whose_panic_panics_in_turn_does_not_end_the_relay() {
    let store = MemoryStore::default();
    let relay = Relay::new(store.clone(), accepting()).observe(|_| panic_any(Bomb));
    let running = Running::start(relay.with_config(fast()));
    store.append(&[placed(1)]).unwrap();
    until("the row is dispatched", || async { store.rows()[0].status == Status::Dispatched }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_a_monitor_whose_panic_panics_in_turn_does_not_end_the_monitor() {
    let looks = Arc::new(AtomicUsize::new(0));
    let monitor = {
        let looks = looks.clone();
        Monitor::new(MemoryStore::default()).on_signals(move |_| {
            looks.fetch_add(1, SeqCst);
            panic_any(Bomb)
        })
    };
    let running = tokio::spawn(async move { monitor.run(std::future::pending()).await });
    until("it has looked three times", || async { looks.load(SeqCst) >= 3 }).await;
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_monitor_that_hardly_ever_looks_begins_late_and_does_not_panic() {
    let looks = Arc::new(AtomicUsize::new(0));
    let monitor = {
        let looks = looks.clone();
        Monitor::new(MemoryStore::default()).every(Duration::MAX).on_signals(move |_| {
            looks.fetch_add(1, SeqCst);
        })
    };
    let running = tokio::spawn(async move { monitor.run(std::future::pending()).await });
    until("it has looked", || async { looks.load(SeqCst) > 0 }).await;
    tokio::time::advance(Duration::from_hours(24 * 365)).await;
    assert!(!running.is_finished());
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_service_that_asks_for_ever_and_other_odd_waits_end_nothing() {
    for wait in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let store = MemoryStore::default();
        store.append(&placed_many(3)).unwrap();
        let handle = move |event: OrderPlaced| async move {
            let error = if event.order_id == 1 {
                HandlerError::unavailable("x")
            } else {
                HandlerError::transient("x")
            };
            Err::<(), _>(error.retry_after(wait))
        };
        let router = Router::builder().on("tests.wait", handle).build().unwrap();
        let running = Running::start(Relay::new(store.clone(), router));
        tokio::time::sleep(Duration::from_hours(30)).await;
        let rows = store.rows();
        assert_eq!(rows[0].status, Status::Pending, "{wait:?}: {:?}", rows[0]);
        assert!(rows.iter().all(|row| row.last_error.is_some()), "{wait:?}: {rows:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn the_clock_of_a_test_relay_can_be_put_forward_by_anything() {
    for by in [Duration::from_hours(24 * 365 * 100), Duration::from_secs(u64::from(u32::MAX)), Duration::MAX]
    {
        let store = MemoryStore::default();
        store.append(&[placed(1)]).unwrap();
        let mut relay = TestRelay::new(store, accepting());
        relay.advance(by);
        relay.advance(by);
        relay.drain().await.assert_all_dispatched();
    }
}

/// As a newcomer writes it: one database in memory, one pool for everything.
#[tokio::test]
async fn handlers_with_a_transaction_and_their_relay_can_share_a_database_in_memory() {
    async fn count(event: OrderPlaced, tx: Tx) -> Result<(), HandlerError> {
        let sql = format!("INSERT INTO effects (id) VALUES ({})", event.order_id);
        tx.begin().await?.execute_unprepared(&sql).await?;
        Ok(())
    }
    let db = Database::connect("sqlite::memory:").await.unwrap();
    migrate(&db, TableNames::new()).await.unwrap();
    db.execute_unprepared("CREATE TABLE effects (id INTEGER NOT NULL PRIMARY KEY)").await.unwrap();
    let append = async |envelopes: &[outbox_core::Envelope]| {
        let tx = db.begin().await.unwrap();
        Outbox::default().append_envelopes(&tx, envelopes).await.unwrap();
        tx.commit().await.unwrap();
    };
    let router =
        Router::builder().state(Transactions::new(db.clone())).on("tests.count", count).build().unwrap();
    let store = SeaOrmStore::new(db.clone());
    append(&placed_many(5)).await;
    let mut relay = TestRelay::new(store.clone(), router.clone());
    for point in
        [FaultPoint::AfterClaim, FaultPoint::AfterHandler, FaultPoint::BeforeMark, FaultPoint::AfterMark]
    {
        relay.crash_at(point);
        relay.pass().await;
    }
    relay.drain().await.assert_all_dispatched();
    append(&[placed(6), placed(7)]).await;
    let running = Running::start(
        Relay::new(store.clone(), router)
            .with_config(RelayConfig { lease: Duration::from_millis(100), ..fast() }),
    );
    until("the others are dispatched", || async { Stored::of(&store).await.count(Status::Dispatched) == 7 })
        .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_relay_that_runs_twice_at_once_handles_each_row_once() {
    let store = MemoryStore::default();
    let calls = Arc::new(AtomicUsize::new(0));
    let handle = {
        let calls = calls.clone();
        move |_: OrderPlaced| {
            calls.fetch_add(1, SeqCst);
            async { Ok::<(), HandlerError>(()) }
        }
    };
    let router = Router::builder().on("tests.once", handle).build().unwrap();
    let relay = Relay::new(store.clone(), router).with_config(fast());
    store.append(&placed_many(500)).unwrap();
    let health = relay.health();
    let stopping = async { tokio::time::sleep(Duration::from_secs(2)).await };
    let (first, second) =
        tokio::join!(relay.run(stopping), relay.run(tokio::time::sleep(Duration::from_secs(4))));
    first.unwrap();
    second.unwrap();
    assert_eq!(calls.load(SeqCst), 500);
    assert!(!health.is_healthy());
    // Stopped before it starts, and started again.
    relay.run(std::future::ready(())).await.unwrap();
    store.append(&[placed(0)]).unwrap();
    relay.run(tokio::time::sleep(Duration::from_secs(1))).await.unwrap();
    assert_eq!(calls.load(SeqCst), 501);
}

/// An error that is its own source.
#[derive(Debug)]
struct Round;

impl std::fmt::Display for Round {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("round and")
    }
}

impl std::error::Error for Round {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_among_its_own_sources_ends_as_any_other() {
    for is_layered in [false, true] {
        let store = MemoryStore::default();
        store.append(&[placed(1)]).unwrap();
        let mut router = Router::builder().on("tests.round", |_: OrderPlaced| async { Err::<(), _>(Round) });
        if is_layered {
            let failing = tower::util::MapErrLayer::new(|_: outbox_core::router::CallError| Round);
            router = router.layer(failing);
        }
        let relay = Relay::new(store.clone(), router.build().unwrap());
        assert_eq!(relay.pass().await.unwrap().retried, 1);
        let (class, text) = store.rows()[0].last_error.clone().unwrap();
        assert_eq!(class, ErrorClass::Transient);
        assert!(text.starts_with("round and: round and") && text.len() == 2_000, "{text}");
    }
}

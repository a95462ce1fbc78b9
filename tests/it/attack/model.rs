use outbox_core::{
    Envelope, HandlerError, OutboxStore, Relay, RelayConfig, RetryPolicy, Router, Status,
    decide::Transition,
    row::LeaseToken,
    store::{ClaimRequest, Mark, OutboxOperator, StoreErrorKind},
    testing::MemoryStore,
};
use outbox_tests::{
    conformance::take_over,
    events::{NoteTaken, OrderPlaced, placed, placed_many, route},
    interposed::{Asked, Interposed},
    running::Running,
    wait::until,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

fn note() -> Envelope {
    Envelope::new(&NoteTaken { text: "x".into() }).unwrap()
}

/// Orders need something that is down; notes need nothing.
fn orders_are_down() -> Router {
    Router::builder()
        .on("tests.publish", |_: OrderPlaced| async { Err::<(), _>(HandlerError::unavailable("away")) })
        .on("tests.note", |_: NoteTaken| async { Ok::<(), HandlerError>(()) })
        .build()
        .unwrap()
}

/// Claims one order as a relay that vanishes, for so long.
async fn vanish_with_an_order(store: &MemoryStore, lease: Duration) -> LeaseToken {
    let routes = [route::<OrderPlaced>()];
    let token = LeaseToken::new();
    let request =
        ClaimRequest { claimed_by: "gone", token, lease, limit: 1, routes: &routes, proceed: &[], now: None };
    assert_eq!(store.claim(&request).await.unwrap().rows.len(), 1);
    token
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_without_rows_to_probe_with_does_not_starve_other_events() {
    let store = MemoryStore::default();
    let order = store.append(&[placed(1)]).unwrap()[0];
    let running = Running::start(Relay::new(store.clone(), orders_are_down()));
    until("the circuit is open", || async { store.rows()[0].last_error.is_some() }).await;
    // Nothing is left to probe with: an operator gave the row up, or another relay dispatched it.
    until("the row is given up", || async { store.skip(order, "ann", None, None).await.is_ok() }).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    store.append(&[note()]).unwrap();
    until("the other event is dispatched", || async { store.rows()[1].status == Status::Dispatched }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_row_with_an_expired_lease_behind_an_open_circuit_is_not_stranded() {
    let store = MemoryStore::default();
    store.append(&placed_many(2)).unwrap();
    vanish_with_an_order(&store, Duration::from_secs(20)).await;
    let up = Arc::new(AtomicUsize::new(0));
    let handler = {
        let up = up.clone();
        move |_: OrderPlaced| {
            let up = up.load(SeqCst);
            async move { if up == 0 { Err(HandlerError::unavailable("away")) } else { Ok(()) } }
        }
    };
    let router = Router::builder().on("tests.publish", handler).build().unwrap();
    let running = Running::start(Relay::new(store.clone(), router));
    until("the circuit is open", || async { store.rows()[1].last_error.is_some() }).await;
    let other = store.rows()[1].id;
    until("the other row is given up", || async { store.skip(other, "ann", None, None).await.is_ok() }).await;
    up.store(1, SeqCst);
    tokio::time::sleep(Duration::from_hours(1)).await;
    let row = store.rows()[0].clone();
    assert_eq!(
        row.status,
        Status::Dispatched,
        "its lease expired an hour ago, and what it needs is up: {row:?}"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relay_does_not_drain_for_an_expired_row_that_another_relay_has_taken() {
    let store = MemoryStore::default();
    let ids = store.append(&[placed(1), note()]).unwrap();
    vanish_with_an_order(&store, Duration::from_secs(10)).await;
    let hour = Duration::from_hours(1);
    let router = Router::builder()
        .on("tests.accept", |_: OrderPlaced| async { Ok::<(), HandlerError>(()) })
        .on("tests.long", move |_: NoteTaken| async move {
            tokio::time::sleep(hour).await;
            Ok::<(), HandlerError>(())
        })
        .build()
        .unwrap();
    let config = RelayConfig { lease: hour * 3, handler_timeout: hour * 2, ..RelayConfig::default() };
    let running = Running::start(Relay::new(store.clone(), router).with_config(config));
    until("the long one runs", || async { store.rows()[1].status == Status::Claimed }).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let found = store.take_over(&take_over(None)).await.unwrap().row;
    let Some(row) = found else { panic!("this test is too late") };
    let token = store.rows()[0].lease.clone().unwrap().token;
    let mark = Mark { id: row.id, token, transition: Transition::Dispatched, replay_of: None };
    assert_eq!(store.mark(&[mark], None).await.unwrap().marked, 1);
    assert_eq!(row.id, ids[0]);
    store.append(&[placed(2)]).unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
    let row = store.rows()[2].clone();
    assert_eq!(row.status, Status::Dispatched, "nothing waits to be taken over any more: {row:?}");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn rows_that_wait_for_a_long_probe_are_not_claimed_again_and_again() {
    let store = MemoryStore::default();
    store.append(&placed_many(5)).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = {
        let calls = calls.clone();
        move |_: OrderPlaced| {
            let call = calls.fetch_add(1, SeqCst);
            async move {
                if call > 0 {
                    // A broker that takes connections and does not answer.
                    std::future::pending::<()>().await;
                }
                Err::<(), _>(HandlerError::unavailable("away"))
            }
        }
    };
    let router = Router::builder()
        .on("tests.accept", |_: OrderPlaced| async { Ok::<(), HandlerError>(()) })
        .on("tests.publish", handler)
        .build()
        .unwrap();
    let running = Running::start(Relay::new(store.clone(), router));
    tokio::time::sleep(Duration::from_secs(25)).await;
    let claims: i64 = store.rows().iter().map(|row| row.claims).sum();
    assert!(claims < 200, "{claims} claims of 5 rows in 25 seconds");
    drop(running);
}

async fn share_of_health(refuse: fn(Asked<'_>) -> Option<StoreErrorKind>) -> u32 {
    let store = MemoryStore::default();
    store.append(&placed_many(3)).unwrap();
    let relay = Relay::new(Interposed::new(store, refuse), orders_are_down());
    let health = relay.health();
    let running = Running::start(relay);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut healthy = 0;
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        healthy += u32::from(health.is_healthy());
    }
    drop(running);
    healthy
}

#[tokio::test(start_paused = true)]
async fn a_relay_whose_claims_are_all_refused_is_not_healthy() {
    let refused = |asked: Asked<'_>| {
        matches!(asked, Asked::Claim | Asked::TakeOver | Asked::HasExpired).then_some(StoreErrorKind::Other)
    };
    let healthy = share_of_health(refused).await;
    assert_eq!(healthy, 0, "of 600 looks, while nothing could be claimed");
}

#[tokio::test(start_paused = true)]
async fn a_relay_on_a_standby_that_only_reads_is_not_healthy() {
    let reads_only = |asked: Asked<'_>| {
        let writes = !matches!(asked, Asked::Check | Asked::Control | Asked::HasExpired | Asked::Announce);
        writes.then_some(StoreErrorKind::Unavailable)
    };
    let healthy = share_of_health(reads_only).await;
    assert_eq!(healthy, 0, "of 600 looks, while nothing could be written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_ends_while_the_relay_cuts_off_is_not_a_dead_letter() {
    let store = MemoryStore::default();
    store.append(&placed_many(1)).unwrap();
    let started = Arc::new(AtomicUsize::new(0));
    let handler = {
        let started = started.clone();
        move |_: OrderPlaced| {
            let started = started.clone();
            async move {
                started.fetch_add(1, SeqCst);
                // It blocks its thread, so it cannot be cut off, and succeeds.
                std::thread::sleep(Duration::from_millis(900));
                Ok::<(), HandlerError>(())
            }
        }
    };
    let router = Router::builder().on("tests.block", handler).build().unwrap();
    let retry = RetryPolicy { max_attempts: 1, ..RetryPolicy::default() };
    let config = RelayConfig { shutdown_timeout: Duration::ZERO, retry, ..RelayConfig::default() };
    let running = Running::start(Relay::new(store.clone(), router).with_config(config));
    // The runtime's timers may hang with the thread that is blocked.
    while started.load(SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    running.stop().await;
    let row = store.rows()[0].clone();
    assert_eq!(row.status, Status::Dispatched, "its only handler succeeded: {row:?}");
}

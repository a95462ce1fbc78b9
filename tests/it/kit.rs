use outbox_core::{
    Envelope, ErrorClass, HandlerError, MessageContext, OutboxStore, RetryPolicy, Router, Status,
    relay::RelayConfig,
    testing::{Drained, FaultPoint, Inspect, MemoryStore, Passed, Raised, Stored, TestRelay},
};
use outbox_seaorm::{
    OutboxTransaction, SeaOrmStore, Transactions, Tx,
    testing::{raised, raised_without_model},
};
use outbox_tests::{
    database::TestDatabase,
    entities::{Order, orders},
    events::{NoteTaken, OrderNumbered, OrderPlaced, OrderShipped, placed, placed_many},
    for_each_database,
    subject::{Memory, Sql, Subject},
};
use sea_orm::ConnectionTrait;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

for_each_database! {
    a_drain_passes_the_backoff_without_waiting,
    a_drain_says_what_is_left,
    a_crash_leaves_what_a_dead_process_would_leave,
    a_drain_keeps_the_order_through_retries_and_crashes,
    an_effect_in_a_transaction_survives_every_crash_once,
}

type Fine = Result<(), HandlerError>;

/// The same on the model in memory.
mod memory {
    #[tokio::test]
    async fn a_drain_passes_the_backoff_without_waiting() {
        super::passes_the_backoff(&super::Memory::default()).await;
    }

    #[tokio::test]
    async fn a_drain_says_what_is_left() {
        super::says_what_is_left(&super::Memory::default()).await;
    }

    #[tokio::test]
    async fn a_crash_leaves_what_a_dead_process_would_leave() {
        super::leaves_what_a_dead_process_would(&super::Memory::default()).await;
    }

    #[tokio::test]
    async fn a_drain_keeps_the_order_through_retries_and_crashes() {
        super::keeps_the_order(&super::Memory::default()).await;
    }
}

async fn a_drain_passes_the_backoff_without_waiting(database: &TestDatabase) {
    passes_the_backoff(&Sql::new(database)).await;
}

async fn a_drain_says_what_is_left(database: &TestDatabase) {
    says_what_is_left(&Sql::new(database)).await;
}

async fn a_crash_leaves_what_a_dead_process_would_leave(database: &TestDatabase) {
    leaves_what_a_dead_process_would(&Sql::new(database)).await;
}

async fn a_drain_keeps_the_order_through_retries_and_crashes(database: &TestDatabase) {
    keeps_the_order(&Sql::new(database)).await;
}

async fn passes_the_backoff<S: Subject<Store: Inspect>>(subject: &S) {
    subject.append(&placed_many(3)).await;
    let handle = |_: OrderPlaced, cx: MessageContext| async move {
        if cx.attempt() < 5 {
            Err(HandlerError::transient("no").retry_after(Duration::from_hours(5)))
        } else {
            Ok(())
        }
    };
    let router = Router::builder().on("tests.handle", handle).build().unwrap();
    let mut relay = TestRelay::new(subject.store().clone(), router);
    let before = relay.now();
    let drained = relay.drain().await;
    drained.assert_all_dispatched();
    assert_eq!((drained.report.retried, drained.report.dispatched, drained.crashes), (12, 3, 0));
    assert!(relay.now() - before >= chrono::TimeDelta::hours(20));
    Stored::of(relay.store()).await.assert_all(Status::Dispatched);
    // What is stored later is due, as late as it seems to be.
    subject.append(&[placed(4)]).await;
    assert_eq!(relay.drain().await.report.dispatched, 1);
}

async fn says_what_is_left<S: Subject<Store: Inspect>>(subject: &S) {
    let note = Envelope::new(&NoteTaken { text: "for another build".into() }).unwrap();
    let shipped = Envelope::new(&OrderShipped { carrier: "a carrier".into() }).unwrap();
    subject.append(&[placed(1), note, shipped]).await;
    let refuse = |_: OrderPlaced| async { Fine::Err(HandlerError::terminal("it is refused")) };
    let down = |_: OrderShipped| async { Fine::Err(HandlerError::unavailable("the carrier is down")) };
    let router = Router::builder().on("tests.refuse", refuse).on("tests.down", down).build().unwrap();
    let mut relay = TestRelay::new(subject.store().clone(), router);
    let drained = relay.drain().await;
    let Drained { left, report, .. } = &drained;
    assert_eq!(
        (report.dead, left.count(Status::Dead), left.count(Status::Pending)),
        (1, 1, 2),
        "{drained:?}"
    );
    let text = message(|| drained.assert_all_dispatched());
    for part in ["it is refused", "terminal", "notes.note-taken.v1", "the carrier is down", "\"order_id\":1"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(message(|| drained.assert_dead(1)).contains("1 dead letters were to be left"));
}

async fn leaves_what_a_dead_process_would<S: Subject<Store: Inspect>>(subject: &S) {
    let ran = Arc::new(AtomicU32::new(0));
    let count = ran.clone();
    let handle = move |_: OrderPlaced| {
        count.fetch_add(1, SeqCst);
        async { Fine::Ok(()) }
    };
    let router = Router::builder().on("tests.handle", handle).build().unwrap();
    let mut relay = TestRelay::new(subject.store().clone(), router);
    for (point, status, runs) in [
        (FaultPoint::AfterClaim, Status::Claimed, [0, 1]),
        (FaultPoint::AfterHandler, Status::Claimed, [1, 2]),
        (FaultPoint::BeforeMark, Status::Claimed, [1, 2]),
        (FaultPoint::AfterMark, Status::Dispatched, [1, 1]),
    ] {
        let order = placed(1);
        subject.append(std::slice::from_ref(&order)).await;
        ran.store(0, SeqCst);
        relay.crash_at(point);
        assert_eq!(relay.pass().await, Passed::Crashed, "{point:?}");
        let row = subject.row(&order).await;
        assert_eq!((row.status, row.attempts, ran.load(SeqCst)), (status, 1, runs[0]), "{point:?}");
        // The lease holds: nobody takes it over before.
        assert!(matches!(relay.pass().await, Passed::Done(report) if report.claimed == 0), "{point:?}");
        relay.drain().await.assert_all_dispatched();
        assert_eq!(ran.load(SeqCst), runs[1], "{point:?}");
    }
    // A drain goes on by itself.
    subject.append(&placed_many(20)).await;
    relay.crash_at(FaultPoint::BeforeMark);
    let drained = relay.drain().await;
    drained.assert_all_dispatched();
    assert_eq!((drained.crashes, drained.report.taken_over), (1, 20));
    let lost = subject.history().await;
    assert!(lost.iter().all(|entry| entry.failed.class == ErrorClass::LeaseExpired));
}

async fn keeps_the_order<S: Subject<Store: Inspect>>(subject: &S) {
    let numbered = |number| Envelope::new(&OrderNumbered { number }).unwrap().with_aggregate("order", "7");
    subject.append(&(1..=6).map(numbered).collect::<Vec<_>>()).await;
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = seen.clone();
    let handle = move |event: OrderNumbered, cx: MessageContext| {
        let note = note.clone();
        async move {
            if event.number == 3 && cx.attempt() < 3 {
                return Err(HandlerError::transient("later"));
            }
            note.lock().unwrap().push(event.number);
            Ok(())
        }
    };
    let router = Router::builder().on("tests.handle", handle).build().unwrap();
    let mut relay = TestRelay::new(subject.store().clone(), router);
    relay.crash_at(FaultPoint::AfterClaim);
    relay.drain().await.assert_all_dispatched();
    assert_eq!(*seen.lock().unwrap(), [1, 2, 3, 4, 5, 6]);
}

/// The kit, the transactions of handlers and a real database together: what a user would test.
async fn an_effect_in_a_transaction_survives_every_crash_once(database: &TestDatabase) {
    database.db.execute_unprepared("CREATE TABLE effects (order_id INT NOT NULL)").await.unwrap();
    let handle = |event: OrderPlaced, tx: Tx| async move {
        let sql = format!("INSERT INTO effects (order_id) VALUES ({})", event.order_id);
        tx.begin().await?.execute_unprepared(&sql).await?;
        Fine::Ok(())
    };
    let transactions = Transactions::new(database.connect().await);
    let router = Router::builder().state(transactions).on("tests.handle", handle).build().unwrap();
    let retry = RetryPolicy { max_attempts: 100, ..RetryPolicy::default() };
    let config = RelayConfig { retry, ..RelayConfig::default() };
    let mut relay = TestRelay::new(SeaOrmStore::new(database.db.clone()), router).with_config(config);
    let points =
        [FaultPoint::AfterClaim, FaultPoint::AfterHandler, FaultPoint::BeforeMark, FaultPoint::AfterMark];
    for (n, point) in (1..).zip(points) {
        let tx = OutboxTransaction::begin(&database.db).await.unwrap();
        outbox_seaorm::append(&tx, OrderPlaced { order_id: n, total_cents: 1 }).await.unwrap();
        tx.commit().await.unwrap();
        relay.crash_at(point);
        let drained = relay.drain().await;
        drained.assert_all_dispatched();
        assert_eq!((drained.crashes, database.count("effects").await), (1, i64::from(n)), "{point:?}");
    }
}

/// What a failing assertion says.
fn message(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).unwrap_err();
    panic
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_else(|| panic.downcast_ref::<&str>().unwrap().to_string())
}

#[test]
fn what_an_aggregate_has_raised_can_be_looked_at() {
    let mut order = Order::place("A-1");
    let saved = orders::Model { id: 7, code: "A-1".into(), status: "placed".into() };
    let all: Raised = raised(&order, &saved);
    assert_eq!(all.only::<OrderPlaced>().order_id, 7);
    order.raise(OrderShipped { carrier: "by sea".into() });
    let all = raised(&order, &saved);
    assert_eq!((all.one::<OrderShipped>().carrier.as_str(), all.all::<OrderPlaced>().len()), ("by sea", 1));
    assert_eq!(all.envelopes().len(), order.pending_events(), "the aggregate keeps them");
    let text = message(|| drop(vec![all.only::<OrderPlaced>()]));
    assert!(text.contains("orders.order-shipped.v1") && text.contains("by sea"), "{text}");
    assert!(message(|| all.assert_none()).contains("nothing was to be raised"));
    assert!(message(|| drop(all.one::<NoteTaken>())).contains("0 events of notes.note-taken.v1"));
    assert!(message(|| drop(raised_without_model(&order))).contains("Raised::of"));
    order.discard_events();
    raised_without_model(&order).assert_none();
}

#[tokio::test]
async fn what_is_stored_can_be_looked_at() {
    let store = MemoryStore::default();
    Stored::of(&store).await.assert_none();
    store.append(&[placed(1), placed(2)]).unwrap();
    let note = Envelope::new(&NoteTaken { text: "hello".into() }).unwrap();
    store.append(std::slice::from_ref(&note)).unwrap();
    let stored = Stored::of(&store).await;
    assert_eq!(
        (stored.rows().len(), stored.count(Status::Pending), stored.all::<OrderPlaced>().len()),
        (3, 3, 2)
    );
    let one = stored.one::<NoteTaken>();
    assert_eq!(
        (one.event.text.as_str(), Some(one.row)),
        ("hello", store.find(note.message_id).await.unwrap())
    );
    let text = message(|| drop(stored.one::<OrderPlaced>()));
    assert!(text.contains("2 events of orders.order-placed.v1") && text.contains("hello"), "{text}");
    assert!(message(|| stored.assert_none()).contains("3 rows"));
    assert!(message(|| stored.assert_all(Status::Dispatched)).contains("every row was to be dispatched"));
}

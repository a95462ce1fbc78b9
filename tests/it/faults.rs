use outbox_core::{
    Envelope, ErrorClass, HandlerError, MessageContext, OutboxStore, Relay, RelayConfig, RetryPolicy, Router,
    State, Status,
    row::LeaseToken,
    store::{ClaimRequest, StoreErrorKind, TakenOver},
    testing::MemoryStore,
};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    conformance::{at, take_over},
    database::{Backend, TestDatabase, begin_immediate},
    events::{OrderPlaced, placed, placed_many, route},
    for_each_database,
    interposed::{Asked, Interposed},
    subject::{Sql, Subject},
    wait::{PATIENCE, until},
};
use sea_orm::ConnectionTrait;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};
use tokio::{sync::oneshot, time::timeout};

for_each_database! {
    a_row_that_cannot_be_read_fails_alone,
    a_row_that_cannot_be_read_does_not_stop_the_take_over,
    many_long_errors_at_once_are_written,
    an_ordered_row_is_not_taken_over_as_if_it_were_unordered,
    a_row_that_was_taken_over_runs_with_nothing_beside_it,
    a_database_that_does_not_answer_does_not_hold_up_the_stop,
}

fn accepting() -> Router {
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    Router::builder().on("tests.accept", accept).build().unwrap()
}

fn relay(database: &TestDatabase, router: Router) -> Relay<SeaOrmStore> {
    Relay::new(SeaOrmStore::new(database.db.clone()), router)
}

/// As a newer version might write it: a header that is no text.
async fn make_unreadable(database: &TestDatabase, envelope: &Envelope) {
    let id = Sql::new(database).row(envelope).await.id;
    let sql = format!("UPDATE outbox SET headers = '{{\"secret\": 1}}' WHERE id = {id}");
    database.db.execute_unprepared(&sql).await.unwrap();
}

async fn a_row_that_cannot_be_read_fails_alone(database: &TestDatabase) {
    let envelopes = placed_many(10);
    Sql::new(database).append(&envelopes).await;
    make_unreadable(database, &envelopes[2]).await;
    let retry = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    let relay = relay(database, accepting()).with_config(RelayConfig { retry, ..RelayConfig::default() });
    let report = relay.pass_at(at(0)).await.unwrap();
    assert_eq!((report.claimed, report.dispatched, report.retried), (10, 9, 1));
    // A build that can read it has its chance meanwhile; in the end it is a dead letter.
    assert_eq!(relay.pass_at(at(1000)).await.unwrap().dead, 1);
    let dead = "outbox WHERE status = 'dead' AND error_class = 'unreadable' AND attempts = 2";
    assert_eq!(database.count(dead).await, 1);
    let history = Sql::new(database).history().await;
    assert_eq!(history.len(), 2);
    let text = &history[0].failed.error;
    assert!(text.contains("column headers") && !text.contains("secret"), "{text}");
}

async fn a_row_that_cannot_be_read_does_not_stop_the_take_over(database: &TestDatabase) {
    let envelopes = placed_many(3);
    let subject = Sql::new(database);
    subject.append(&envelopes).await;
    let vanished = outbox_tests::conformance::request(3, at(0));
    assert_eq!(subject.store().claim(&vanished).await.unwrap().rows.len(), 3);
    make_unreadable(database, &envelopes[0]).await;
    let relay = relay(database, accepting());
    let mut dispatched = 0;
    for second in 100..103 {
        dispatched += relay.pass_at(at(second)).await.unwrap().dispatched;
    }
    assert_eq!(dispatched, 2);
    assert_eq!(database.count("outbox WHERE status = 'pending' AND error_class = 'unreadable'").await, 1);
}

async fn many_long_errors_at_once_are_written(database: &TestDatabase) {
    Sql::new(database).append(&placed_many(300)).await;
    let fail = |_: OrderPlaced| async { Err::<(), _>(HandlerError::terminal("\u{1}🚀".repeat(1000))) };
    let builder =
        Router::builder().on("tests.fail-one", fail).on("tests.fail-two", fail).on("tests.fail-three", fail);
    let config = RelayConfig { batch_size: 300, ..RelayConfig::default() };
    let relay = relay(database, builder.build().unwrap()).with_config(config);
    assert_eq!(relay.pass_at(at(0)).await.unwrap().dead, 300);
    assert_eq!(database.count("outbox WHERE status = 'dead'").await, 300);
    assert_eq!(database.count("outbox_attempts").await, 900);
}

async fn an_ordered_row_is_not_taken_over_as_if_it_were_unordered(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&[placed(1)]).await;
    let vanished = outbox_tests::conformance::request(1, at(0));
    assert_eq!(subject.store().claim(&vanished).await.unwrap().rows.len(), 1);
    database.db.execute_unprepared("UPDATE outbox SET ordering_key = '=a', lane = 1").await.unwrap();
    assert!(!subject.store().has_expired(&take_over(at(100))).await.unwrap());
    assert_eq!(subject.store().take_over(&take_over(at(100))).await.unwrap(), TakenOver::default());
}

/// Counts how many handlers run, and how many of them beside one that was taken over.
#[derive(Clone, Default)]
struct Beside {
    running: Arc<AtomicUsize>,
    alone: Arc<AtomicUsize>,
    broken: Arc<AtomicUsize>,
    taken_over: Arc<AtomicUsize>,
}

async fn look_beside(
    _: OrderPlaced,
    State(beside): State<Beside>,
    cx: MessageContext,
) -> Result<(), HandlerError> {
    let is_alone = usize::from(cx.claims() > 1);
    beside.alone.fetch_add(is_alone, SeqCst);
    beside.running.fetch_add(1, SeqCst);
    // Long enough for others to start, if they may.
    for _ in 0..20 {
        if beside.alone.load(SeqCst) > 0 && beside.running.load(SeqCst) > 1 {
            beside.broken.fetch_add(1, SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    beside.taken_over.fetch_add(is_alone, SeqCst);
    beside.running.fetch_sub(1, SeqCst);
    beside.alone.fetch_sub(is_alone, SeqCst);
    Ok(())
}

async fn a_row_that_was_taken_over_runs_with_nothing_beside_it(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(5)).await;
    let lease = Duration::from_millis(100);
    let routes = [route::<OrderPlaced>()];
    let vanished = ClaimRequest {
        claimed_by: "vanished",
        token: LeaseToken::new(),
        lease,
        limit: 5,
        routes: &routes,
        proceed: &[],
        now: None,
    };
    assert_eq!(subject.store().claim(&vanished).await.unwrap().rows.len(), 5);
    let beside = Beside::default();
    let looking = Router::builder().state(beside.clone()).on("tests.look", look_beside).build().unwrap();
    let poll = Duration::from_millis(5);
    let config = RelayConfig { batch_size: 4, poll_min: poll, poll_max: poll, ..RelayConfig::default() };
    let relay = relay(database, looking).with_config(config);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
    // Under load all the time, so that there is always somebody who could run beside it.
    until("the vanished rows are dispatched", || async {
        subject.append(&placed_many(6)).await;
        beside.taken_over.load(SeqCst) == 5
    })
    .await;
    drop(stop);
    running.await.unwrap().unwrap();
    assert_eq!(beside.broken.load(SeqCst), 0);
}

async fn a_database_that_does_not_answer_does_not_hold_up_the_stop(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(1)).await;
    let poll = Duration::from_millis(5);
    let shutdown_timeout = Duration::from_millis(100);
    let config = RelayConfig { shutdown_timeout, poll_min: poll, poll_max: poll, ..RelayConfig::default() };
    let relay = relay(database, accepting()).with_config(config);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
    until("it works", || async { database.count("outbox WHERE status = 'dispatched'").await == 1 }).await;
    // Whoever holds this keeps the relay waiting, without end.
    let holder = database.connect().await;
    let lock = begin_immediate(&holder).await;
    let waits = match database.backend {
        Backend::Postgres => {
            lock.execute_unprepared("LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE").await.unwrap();
            Some("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        }
        Backend::MySql => {
            lock.execute_unprepared("LOCK TABLES outbox WRITE").await.unwrap();
            Some("information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table%'")
        }
        // Nobody can be asked there whether somebody waits.
        Backend::Sqlite => None,
    };
    if let Some(waits) = waits {
        until("the relay waits", || async { database.count(waits).await > 0 }).await;
    }
    drop(stop);
    timeout(PATIENCE / 2, running).await.expect("it stops while it is kept waiting").unwrap().unwrap();
    drop(lock);
    holder.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_does_not_hold_up_the_stop() {
    let store = MemoryStore::default();
    store.append(&[placed(1)]).unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    let (started, has_started) = oneshot::channel();
    let (blocked, started) = (Arc::new(Mutex::new(blocked)), Arc::new(Mutex::new(Some(started))));
    let block = move |_: OrderPlaced| {
        let (blocked, started) = (blocked.clone(), started.clone());
        async move {
            if let Some(started) = started.lock().unwrap().take() {
                started.send(()).unwrap();
            }
            // Ends when the test drops its half.
            assert!(blocked.lock().unwrap().recv().is_err());
            Ok::<(), HandlerError>(())
        }
    };
    let router = Router::builder().on("tests.block", block).build().unwrap();
    let config = RelayConfig { shutdown_timeout: Duration::from_millis(50), ..RelayConfig::default() };
    let relay = Relay::new(store.clone(), router).with_config(config);
    timeout(PATIENCE, relay.run(async { drop(has_started.await) })).await.expect("it stops").unwrap();
    let row = &store.rows()[0];
    assert_eq!((row.status, row.attempts), (Status::Pending, 1));
    assert_eq!(row.last_error.as_ref().map(|(class, _)| *class), Some(ErrorClass::Interrupted));
    drop(release);
}

#[tokio::test]
async fn a_mark_that_is_refused_for_good_keeps_no_other_from_being_written() {
    let store = MemoryStore::default();
    let refused = store.append(&placed_many(5)).unwrap()[1];
    let is_refused = move |asked: Asked<'_>| {
        let Asked::Mark(marks) = asked else { return None };
        marks.iter().any(|mark| mark.id == refused).then_some(StoreErrorKind::Other)
    };
    let relay = Relay::new(Interposed::new(store.clone(), is_refused), accepting());
    assert!(relay.pass_at(at(0)).await.is_err(), "a pass does not wait for it");
    let statuses: Vec<_> = store.rows().iter().map(|row| row.status).collect();
    let done = Status::Dispatched;
    assert_eq!(statuses, [done, Status::Claimed, done, done, done]);
}

#[tokio::test(start_paused = true)]
async fn marks_that_cannot_be_written_now_are_written_later() {
    let store = MemoryStore::default();
    store.append(&placed_many(3)).unwrap();
    let tries = AtomicUsize::new(0);
    let refuses = move |asked: Asked<'_>| {
        let is_refused = matches!(asked, Asked::Mark(_)) && tries.fetch_add(1, SeqCst) < 3;
        is_refused.then_some(StoreErrorKind::Unavailable)
    };
    let relay = Relay::new(Interposed::new(store.clone(), refuses), accepting());
    let all_done = async {
        until("all are dispatched", || async {
            store.rows().iter().all(|row| row.status == Status::Dispatched)
        })
        .await;
    };
    relay.run(all_done).await.unwrap();
    assert!(store.rows().iter().all(|row| (row.attempts, row.claims) == (1, 1)), "and no handler ran twice");
}

#[tokio::test(start_paused = true)]
async fn marks_whose_answer_was_lost_are_not_counted_as_lost_leases() {
    let store = MemoryStore::default();
    store.append(&placed_many(3)).unwrap();
    let answers = AtomicUsize::new(0);
    let loses = move |asked: Asked<'_>| {
        let is_lost = matches!(asked, Asked::Marked(_)) && answers.fetch_add(1, SeqCst) == 0;
        is_lost.then_some(StoreErrorKind::Unavailable)
    };
    let relay = Relay::new(Interposed::new(store.clone(), loses), accepting());
    assert!(relay.pass().await.is_err(), "the answer was lost");
    assert!(store.rows().iter().all(|row| row.status == Status::Dispatched));
    assert_eq!(store.history(), []);
}

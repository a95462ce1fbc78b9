use outbox_core::{
    Envelope, HandlerError, MessageContext, MessageId, Relay, RelayConfig, RelayError, RetryPolicy, Router,
    State, Status, store::StoreErrorKind,
};
use outbox_seaorm::{SeaOrmStore, append};
use outbox_tests::{
    conformance::at,
    database::TestDatabase,
    entities::Order,
    events::{NoteTaken, OrderPlaced, placed, placed_many},
    for_each_database,
    running::{Running, fast},
    statements::Statements,
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, TransactionTrait};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

for_each_database! {
    an_event_that_commits_after_a_later_one_is_dispatched,
    nothing_that_many_writers_commit_is_lost,
    a_commit_in_the_same_process_wakes_the_relay,
    polling_finds_what_nobody_announced,
    a_batch_is_one_claim_and_one_mark,
    more_unreadable_rows_than_a_batch_hold_up_nothing,
    a_row_that_no_handler_of_this_build_reads_stays_pending,
    an_always_failing_handler_runs_exactly_as_often_as_allowed,
    a_stopping_relay_finishes_what_runs_and_gives_back_the_rest,
    a_handler_that_outlasts_the_stop_is_interrupted_and_its_attempt_counts,
    a_row_that_waits_too_long_for_a_slot_is_given_back_in_time,
    a_relay_can_be_started_again,
    a_relay_without_its_tables_says_what_to_do,
    a_relay_with_older_tables_says_what_to_do,
}

/// Which messages were handled, how often.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<MessageId, u32>>>);

impl Seen {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

async fn see(_: OrderPlaced, State(seen): State<Seen>, cx: MessageContext) -> Result<(), HandlerError> {
    *seen.0.lock().unwrap().entry(cx.message_id()).or_default() += 1;
    Ok(())
}

fn seeing(seen: &Seen) -> Router {
    Router::builder().state(seen.clone()).on("tests.see", see).build().unwrap()
}

fn relay(database: &TestDatabase, router: Router) -> Relay<SeaOrmStore> {
    Relay::new(SeaOrmStore::new(database.db.clone()), router)
}

/// A relay that looks at the database once, and then only when it is woken.
fn only_woken() -> RelayConfig {
    let hour = Duration::from_hours(1);
    RelayConfig { poll_min: hour, poll_max: hour, ..RelayConfig::default() }
}

async fn an_event_that_commits_after_a_later_one_is_dispatched(database: &TestDatabase) {
    let seen = Seen::default();
    let relay = relay(database, seeing(&seen));
    if !database.backend.has_concurrent_writers() {
        // One writer at a time: a later transaction cannot commit first.
        return;
    }
    let slow = database.db.begin().await.unwrap();
    append(&slow, OrderPlaced { order_id: 1, total_cents: 1 }).await.unwrap();
    let quick = database.db.begin().await.unwrap();
    append(&quick, OrderPlaced { order_id: 2, total_cents: 1 }).await.unwrap();
    quick.commit().await.unwrap();
    assert_eq!(relay.pass().await.unwrap().dispatched, 1);
    slow.commit().await.unwrap();
    assert_eq!(relay.pass().await.unwrap().dispatched, 1);
    assert_eq!((seen.count(), database.count("outbox WHERE status = 'dispatched'").await), (2, 2));
}

async fn nothing_that_many_writers_commit_is_lost(database: &TestDatabase) {
    let seen = Seen::default();
    // SQLite: one relay, as documented.
    let relays = if database.backend.has_concurrent_writers() { 2 } else { 1 };
    let relays: Vec<_> =
        (0..relays).map(|_| Running::start(relay(database, seeing(&seen)).with_config(fast()))).collect();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let db = database.db.clone();
        writers.spawn(async move {
            let mut committed = Vec::new();
            for n in 0..12 {
                let tx = outbox_tests::database::begin_immediate(&db).await;
                let id = append(&tx, OrderPlaced { order_id: n, total_cents: 1 }).await.unwrap();
                // Ids are given out now and become visible in any order.
                for _ in 0..(writer * 7 + n * 5) % 13 {
                    tokio::task::yield_now().await;
                }
                if (writer + n) % 4 == 0 {
                    tx.rollback().await.unwrap();
                } else {
                    tx.commit().await.unwrap();
                    committed.push(id);
                }
            }
            committed
        });
    }
    let committed = writers.join_all().await.concat();
    until("all are dispatched", || async {
        database.count("outbox WHERE status <> 'dispatched'").await == 0
    })
    .await;
    for relay in relays {
        relay.stop().await;
    }
    let seen = seen.0.lock().unwrap().clone();
    assert_eq!(
        seen.keys().copied().collect::<std::collections::BTreeSet<_>>(),
        committed.iter().copied().collect()
    );
    assert!(seen.values().all(|times| *times == 1), "no lease expired, so nothing ran twice");
}

async fn a_commit_in_the_same_process_wakes_the_relay(database: &TestDatabase) {
    let seen = Seen::default();
    let running = Running::start(relay(database, seeing(&seen)).with_config(only_woken()));
    for n in 1..=3 {
        Order::place(&format!("A-{n}")).save(&database.db).await.unwrap();
        until("the relay was woken", || async { seen.count() == n }).await;
    }
    running.stop().await;
    assert_eq!(database.count("outbox WHERE status = 'dispatched'").await, 3);
}

async fn polling_finds_what_nobody_announced(database: &TestDatabase) {
    let seen = Seen::default();
    let running = Running::start(relay(database, seeing(&seen)).with_config(fast()));
    let tx = database.db.begin().await.unwrap();
    append(&tx, OrderPlaced { order_id: 1, total_cents: 1 }).await.unwrap();
    tx.commit().await.unwrap();
    until("the relay polled", || async { seen.count() == 1 }).await;
    running.stop().await;
}

async fn a_batch_is_one_claim_and_one_mark(database: &TestDatabase) {
    Sql::new(database).append(&placed_many(100)).await;
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let relay = Relay::new(SeaOrmStore::new(db), seeing(&Seen::default()));
    assert_eq!(relay.pass().await.unwrap().dispatched, 100);
    let sent = statements.take();
    let updates =
        |status: &str| sent.iter().filter(|sql| sql.contains(&format!("SET status = '{status}'"))).count();
    assert_eq!((updates("claimed"), updates("dispatched")), (1, 1), "{sent:#?}");
    let is_of_the_start = |sql: &&String| sql.contains("WHERE 1 = 0") || sql.starts_with("SHOW");
    let others: Vec<_> =
        sent.iter().filter(|sql| !is_of_the_start(sql) && !sql.contains("SET status")).collect();
    // What is paused, whether leases have expired, whether there are replays of ordered rows or keys; PostgreSQL is told how
    // to plan before, and the others select before they claim.
    assert_eq!(others.len(), 5, "{others:#?}");
}

async fn more_unreadable_rows_than_a_batch_hold_up_nothing(database: &TestDatabase) {
    let subject = Sql::new(database);
    let broken =
        |_| Envelope::stored(MessageId::new(), "orders.order-placed".into(), 1, "{\"secret\":1}".into());
    subject.append(&(0..25).map(broken).collect::<Vec<_>>()).await;
    subject.append(&placed_many(5)).await;
    let seen = Seen::default();
    let config = RelayConfig { batch_size: 10, ..RelayConfig::default() };
    let relay = relay(database, seeing(&seen)).with_config(config);
    let mut dead = 0;
    for _ in 0..3 {
        dead += relay.pass_at(at(0)).await.unwrap().dead;
    }
    assert_eq!((dead, seen.count()), (25, 5));
    assert_eq!(
        database.count("outbox WHERE status = 'dead' AND error_class = 'decode' AND attempts = 1").await,
        25
    );
    assert_eq!(
        database.count("outbox_attempts WHERE error_class = 'decode' AND error NOT LIKE '%secret%'").await,
        25
    );
}

async fn a_row_that_no_handler_of_this_build_reads_stays_pending(database: &TestDatabase) {
    let subject = Sql::new(database);
    let newer = Envelope::stored(MessageId::new(), "orders.order-placed".into(), 2, "{}".into());
    let unhandled = Envelope::new(&NoteTaken { text: String::new() }).unwrap();
    subject.append(&[newer.clone(), unhandled.clone(), placed(1)]).await;
    let report = relay(database, seeing(&Seen::default())).pass_at(at(0)).await.unwrap();
    assert_eq!((report.claimed, report.dispatched), (1, 1));
    for envelope in [newer, unhandled] {
        let row = subject.row(&envelope).await;
        assert_eq!((row.status, row.attempts, row.claims), (Status::Pending, 0, 0));
    }
}

async fn an_always_failing_handler_runs_exactly_as_often_as_allowed(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let fails = |_: OrderPlaced| async { Err::<(), _>(HandlerError::transient("always \0")) };
    let router = Router::builder().on("tests.fail", fails).build().unwrap();
    let retry = RetryPolicy { max_attempts: 4, base: Duration::from_secs(8), cap: Duration::from_secs(16) };
    let relay = relay(database, router).with_config(RelayConfig { retry, ..RelayConfig::default() });
    // The delays are between half and all of 8, 16 and 16 seconds.
    let mut attempts = Vec::new();
    for second in 0..200 {
        attempts.extend((relay.pass_at(at(second)).await.unwrap().claimed > 0).then_some(second));
    }
    let gaps: Vec<_> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(attempts.len(), 4);
    assert!(
        (4..=9).contains(&gaps[0]) && (8..=17).contains(&gaps[1]) && (8..=17).contains(&gaps[2]),
        "{gaps:?}"
    );
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.attempts, row.last_error.unwrap().1.as_str()), (Status::Dead, 4, "always "));
    assert_eq!(subject.history().await.iter().map(|entry| entry.attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

/// A handler that runs until it is let go.
#[derive(Clone)]
struct Gate {
    started: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn closed() -> Self {
        Self { started: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    fn router(&self) -> Router {
        let pass = |_: OrderPlaced, State(gate): State<Gate>| async move {
            gate.started.add_permits(1);
            gate.open.acquire().await.map(SemaphorePermit::forget)
        };
        Router::builder().state(self.clone()).on("tests.pass", pass).build().unwrap()
    }

    async fn wait_for(&self, handlers: u32) {
        self.started.acquire_many(handlers).await.unwrap().forget();
    }
}

async fn a_stopping_relay_finishes_what_runs_and_gives_back_the_rest(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelopes = placed_many(5);
    subject.append(&envelopes).await;
    let gate = Gate::closed();
    let config = RelayConfig { concurrency: 2, ..fast() };
    let running = Running::start(relay(database, gate.router()).with_config(config));
    gate.wait_for(2).await;
    let mut ended = tokio::spawn(running.stop());
    // The others are given back at once, while the two still run.
    until("the others are given back", || async {
        database.count("outbox WHERE status = 'pending'").await == 3
    })
    .await;
    assert!(!ended.is_finished());
    gate.open.add_permits(2);
    (&mut ended).await.unwrap();
    let mut rows = Vec::new();
    for envelope in &envelopes {
        let row = subject.row(envelope).await;
        assert_eq!(row.lease, None);
        rows.push((row.status.as_str(), row.attempts, row.claims));
    }
    // Which of them ran first is not promised.
    rows.sort_unstable();
    let (done, back) = (("dispatched", 1, 1), ("pending", 0, 1));
    assert_eq!(rows, [done, done, back, back, back]);
}

async fn a_handler_that_outlasts_the_stop_is_interrupted_and_its_attempt_counts(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let gate = Gate::closed();
    let config = RelayConfig { shutdown_timeout: Duration::ZERO, ..fast() };
    let running = Running::start(relay(database, gate.router()).with_config(config));
    gate.wait_for(1).await;
    running.stop().await;
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.attempts, row.lease), (Status::Pending, 1, None));
    assert_eq!(subject.history().await[0].failed.class, outbox_core::ErrorClass::Interrupted);
    // It is due at once.
    gate.open.add_permits(1);
    assert_eq!(relay(database, gate.router()).pass().await.unwrap().dispatched, 1);
}

async fn a_row_that_waits_too_long_for_a_slot_is_given_back_in_time(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelopes = placed_many(3);
    subject.append(&envelopes).await;
    let gate = Gate::closed();
    // No time for a second handler within the lease of a batch.
    let config = RelayConfig {
        concurrency: 1,
        lease: Duration::from_secs(2),
        handler_timeout: Duration::from_millis(1900),
        ..fast()
    };
    let running = Running::start(relay(database, gate.router()).with_config(config));
    gate.wait_for(1).await;
    until("the others are given back and claimed again", || async {
        database.count("outbox WHERE claims > 1").await == 2
    })
    .await;
    gate.open.add_permits(3);
    until("all are dispatched", || async { database.count("outbox WHERE status = 'dispatched'").await == 3 })
        .await;
    running.stop().await;
    assert_eq!(database.count("outbox WHERE attempts = 1").await, 3);
    assert_eq!(subject.history().await, []);
}

async fn a_relay_can_be_started_again(database: &TestDatabase) {
    let seen = Seen::default();
    let relay = Arc::new(relay(database, seeing(&seen)).with_config(fast()));
    for n in 1..=3 {
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn({
            let relay = relay.clone();
            async move { relay.run(async { drop(stopped.await) }).await }
        });
        Order::place(&format!("A-{n}")).save(&database.db).await.unwrap();
        until("it works", || async { seen.count() == n }).await;
        // Dropping the sender stops it as well.
        drop(stop);
        running.await.unwrap().unwrap();
    }
    // Stopped before it began.
    relay.run(std::future::ready(())).await.unwrap();
}

async fn a_relay_without_its_tables_says_what_to_do(database: &TestDatabase) {
    database.db.execute_unprepared("DROP TABLE outbox_control").await.unwrap();
    let error = relay(database, seeing(&Seen::default())).run(std::future::pending()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("outbox_control") && text.contains("is missing: run the outbox's migrations"),
        "{text}"
    );
    assert!(matches!(error, RelayError::Store(error) if error.kind() == StoreErrorKind::Setup));
}

async fn a_relay_with_older_tables_says_what_to_do(database: &TestDatabase) {
    database.db.execute_unprepared("ALTER TABLE outbox_attempts DROP COLUMN handler_id").await.unwrap();
    let error = relay(database, seeing(&Seen::default())).pass().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("outbox_attempts") && text.contains("is older than this version: run the"),
        "{text}"
    );
}

#[tokio::test]
async fn a_relay_whose_database_is_not_there_says_so() {
    // SQLite has no server, and SeaORM opens its file before there is a connection.
    for url in ["postgres://nobody@127.0.0.1:9/none", "mysql://nobody@127.0.0.1:9/none"] {
        let mut options = ConnectOptions::new(url);
        options.connect_lazy(true).acquire_timeout(Duration::from_millis(200)).sqlx_logging(false);
        let db = Database::connect(options).await.unwrap();
        let error =
            Relay::new(SeaOrmStore::new(db), seeing(&Seen::default())).run(std::future::pending()).await;
        let error = error.unwrap_err();
        assert!(error.to_string().contains("the database cannot be reached"), "{url}: {error}");
        assert!(matches!(error, RelayError::Store(error) if error.may_pass()), "{url}");
    }
}

#[tokio::test]
async fn a_relay_with_an_impossible_configuration_does_not_start() {
    let store = outbox_core::testing::MemoryStore::default();
    let relay = Relay::new(store, seeing(&Seen::default()))
        .with_config(RelayConfig { batch_size: 0, ..RelayConfig::default() });
    let error = relay.run(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("batch_size must be 1 to 1000, it is 0"), "{error}");
}

use outbox_core::{
    Envelope, HandlerError, MessageContext, Relay, RelayConfig, RetryPolicy, Router, Status,
    store::{OutboxOperator, Replay},
};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    conformance::at,
    database::{Backend, TestDatabase},
    entities::Order,
    events::{OrderNumbered, OrderPlaced},
    for_each_database,
    process::Process,
    running::{Running, fast},
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectionTrait, Statement};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Semaphore;

for_each_database! {
    the_first_completions_of_each_key_are_in_order_though_relays_are_killed,
    what_follows_a_failing_row_of_its_key_waits_and_other_keys_flow,
    a_slow_handler_holds_up_only_its_key,
    a_dead_row_holds_up_its_key_until_its_replay_is_dispatched,
    an_ordered_event_wakes_the_relay_like_any_other,
    many_rows_of_one_key_take_one_claim,
    a_backlog_of_few_keys_is_drained_without_a_look_in_between,
}

fn relay(database: &TestDatabase, router: Router) -> Relay<SeaOrmStore> {
    let base = Duration::from_millis(20);
    let retry = RetryPolicy { base, cap: base, max_attempts: 3 };
    Relay::new(SeaOrmStore::new(database.db.clone()), router).with_config(RelayConfig { retry, ..fast() })
}

/// The event with this number of a key.
fn numbered(key: usize, number: i32, total_cents: i64) -> Envelope {
    let order_id = i32::try_from(key).unwrap() * 1_000 + number;
    Envelope::new(&OrderPlaced { order_id, total_cents }).unwrap().with_ordering_key(&format!("key-{key}"))
}

/// Which numbers of each key were handled, in the order in which they were.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<i32, Vec<i32>>>>);

impl Seen {
    fn add(&self, order_id: i32) {
        self.0.lock().unwrap().entry(order_id / 1_000).or_default().push(order_id % 1_000);
    }

    fn of(&self, key: i32) -> Vec<i32> {
        self.0.lock().unwrap().get(&key).cloned().unwrap_or_default()
    }

    /// Handles whatever comes; a negative total fails.
    fn router(&self) -> Router {
        let seen = self.clone();
        let handle = move |event: OrderPlaced, cx: MessageContext| {
            let seen = seen.clone();
            async move {
                if event.total_cents == -1 || (event.total_cents == -3 && cx.attempt() == 1) {
                    return Err(HandlerError::transient("it fails"));
                }
                seen.add(event.order_id);
                Ok(())
            }
        };
        Router::builder().on("tests.see", handle).build().unwrap()
    }
}

async fn create_tables(database: &TestDatabase) {
    let id = match database.backend {
        Backend::Postgres => "seq BIGSERIAL PRIMARY KEY",
        Backend::MySql => "seq BIGINT AUTO_INCREMENT PRIMARY KEY",
        Backend::Sqlite => "seq INTEGER PRIMARY KEY AUTOINCREMENT",
    };
    let handled = format!("handled ({id}, order_id INT NOT NULL, attempt INT NOT NULL)");
    for table in [&*handled, "gate (open INT NOT NULL)"] {
        database.db.execute_unprepared(&format!("CREATE TABLE {table}")).await.unwrap();
    }
}

async fn the_first_completions_of_each_key_are_in_order_though_relays_are_killed(database: &TestDatabase) {
    create_tables(database).await;
    let (keys, rows) = (8, 40);
    let subject = Sql::new(database);
    // Every seventh fails at first, so keys are in backoff now and then.
    let total = |number: i32| if number % 7 == 3 { -3 } else { 1 };
    let envelopes: Vec<_> = (1..=rows)
        .flat_map(|number| (0..keys).map(move |key| numbered(key, number, total(number))))
        .collect();
    for part in envelopes.chunks(40) {
        subject.append(part).await;
    }
    let relays = if database.backend.has_concurrent_writers() { 3 } else { 1 };
    let all = i64::try_from(envelopes.len()).unwrap();
    let mut killed = 0;
    while killed < 4 {
        let running: Vec<_> =
            (0..relays).map(|_| Process::start(&["patient-drain", &database.url])).collect();
        let before = database.count("handled").await;
        until("some more are handled", || async {
            database.count("handled").await > before + 10
                || database.count("outbox WHERE finished_at IS NULL").await == 0
        })
        .await;
        for relay in running {
            // One that has drained the table has ended by itself.
            if database.count("outbox WHERE finished_at IS NULL").await > 0 {
                relay.signal("KILL").await;
            }
            drop(relay.output().await);
        }
        killed += 1;
    }
    let output = Process::start(&["patient-drain", &database.url]).output().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(database.count("outbox WHERE status = 'dispatched'").await, all);
    let sql = "SELECT order_id FROM handled WHERE attempt > 1 OR (order_id % 1000) % 7 <> 3
                GROUP BY order_id ORDER BY MIN(seq)";
    let handled = database
        .db
        .query_all_raw(Statement::from_string(database.db.get_database_backend(), sql))
        .await
        .unwrap();
    let seen = Seen::default();
    for row in &handled {
        seen.add(row.try_get("", "order_id").unwrap());
    }
    for key in 0..i32::try_from(keys).unwrap() {
        assert_eq!(seen.of(key), (1..=rows).collect::<Vec<_>>(), "key {key}");
    }
}

async fn what_follows_a_failing_row_of_its_key_waits_and_other_keys_flow(database: &TestDatabase) {
    let subject = Sql::new(database);
    let rows =
        [numbered(1, 1, 1), numbered(1, 2, -3), numbered(1, 3, 1), numbered(2, 1, 1), numbered(2, 2, 1)];
    subject.append(&rows).await;
    let seen = Seen::default();
    let report = relay(database, seen.router()).pass_at(at(0)).await.unwrap();
    assert_eq!((report.claimed, report.dispatched, report.retried, report.released), (5, 3, 1, 1));
    assert_eq!((seen.of(1), seen.of(2)), (vec![1], vec![1, 2]));
    let waiting = subject.row(&rows[2]).await;
    assert_eq!((waiting.status, waiting.attempts, waiting.claims), (Status::Pending, 0, 1));
    assert_eq!(relay(database, seen.router()).pass_at(at(0)).await.unwrap().claimed, 0, "the key is blocked");
    assert_eq!(relay(database, seen.router()).pass_at(at(9)).await.unwrap().dispatched, 2);
    assert_eq!(seen.of(1), [1, 2, 3]);
}

async fn a_slow_handler_holds_up_only_its_key(database: &TestDatabase) {
    let subject = Sql::new(database);
    let gate = Arc::new(Semaphore::new(0));
    let seen = Seen::default();
    let handle = {
        let (gate, seen) = (gate.clone(), seen.clone());
        move |event: OrderPlaced| {
            let (gate, seen) = (gate.clone(), seen.clone());
            async move {
                if event.order_id < 1_000 {
                    gate.acquire().await.map(tokio::sync::SemaphorePermit::forget)?;
                }
                seen.add(event.order_id);
                Ok::<(), HandlerError>(())
            }
        }
    };
    let router = Router::builder().on("tests.slow", handle).build().unwrap();
    let mut rows: Vec<_> = (1..=20).map(|number| numbered(0, number, 1)).collect();
    rows.extend((1..=20).flat_map(|number| (1..=5).map(move |key| numbered(key, number, 1))));
    subject.append(&rows).await;
    let running = Running::start(relay(database, router));
    until("the other keys are through", || async { (1..=5).all(|key| seen.of(key).len() == 20) }).await;
    assert_eq!(seen.of(0), [0; 0]);
    gate.add_permits(100);
    until("so is the slow one", || async { seen.of(0).len() == 20 }).await;
    running.stop().await;
    for key in 0..=5 {
        assert_eq!(seen.of(key), (1..=20).collect::<Vec<_>>());
    }
}

async fn a_dead_row_holds_up_its_key_until_its_replay_is_dispatched(database: &TestDatabase) {
    let subject = Sql::new(database);
    let rows = [numbered(1, 1, -1), numbered(1, 2, 1), numbered(2, 1, 1)];
    subject.append(&rows).await;
    let seen = Seen::default();
    let running = Running::start(relay(database, seen.router()));
    until("it is dead", || async { subject.row(&rows[0]).await.status == Status::Dead }).await;
    until("the other key is through", || async { seen.of(2) == [1] }).await;
    assert_eq!(subject.row(&rows[1]).await.status, Status::Pending);
    // It was mended, by hand.
    let mend = "UPDATE outbox SET payload = '{\"order_id\":1001,\"total_cents\":1}' WHERE status = 'dead'";
    database.db.execute_unprepared(mend).await.unwrap();
    let id = subject.row(&rows[0]).await.id;
    subject.store().replay(&Replay { id, by: "ann", reason: None, all_handlers: false }).await.unwrap();
    until("the key flows again", || async { seen.of(1) == [1, 2] }).await;
    running.stop().await;
    assert!(subject.row(&rows[0]).await.resolved_at.is_some());
}

async fn an_ordered_event_wakes_the_relay_like_any_other(database: &TestDatabase) {
    let handled = Arc::new(Mutex::new(Vec::new()));
    let handle = {
        let handled = handled.clone();
        move |event: OrderNumbered| {
            handled.lock().unwrap().push(event.number);
            async { Ok::<(), HandlerError>(()) }
        }
    };
    let router = Router::builder().on("tests.number", handle).ignore::<OrderPlaced>().build().unwrap();
    let hour = Duration::from_hours(1);
    let config = RelayConfig { poll_min: hour, poll_max: hour, ..RelayConfig::default() };
    let running = Running::start(relay(database, router).with_config(config));
    let mut order = Order::place("one");
    order.save(&database.db).await.unwrap();
    for number in 1..=3 {
        order.number(number);
        order.save(&database.db).await.unwrap();
    }
    until("all are handled", || async { handled.lock().unwrap().len() == 3 }).await;
    running.stop().await;
    assert_eq!(*handled.lock().unwrap(), [1, 2, 3]);
}

async fn many_rows_of_one_key_take_one_claim(database: &TestDatabase) {
    let rows: Vec<_> = (1..=100).map(|number| numbered(1, number, 1)).collect();
    Sql::new(database).append(&rows).await;
    let mut db = database.connect().await;
    let statements = outbox_tests::statements::Statements::listen(&mut db);
    let seen = Seen::default();
    let relay = Relay::new(SeaOrmStore::new(db), seen.router());
    assert_eq!(relay.pass().await.unwrap().dispatched, 100);
    let sent = statements.take();
    let updates =
        |status: &str| sent.iter().filter(|sql| sql.contains(&format!("SET status = '{status}'"))).count();
    assert_eq!(updates("claimed"), 1, "{sent:#?}");
    assert!(updates("dispatched") <= 2, "marks are written together");
    assert_eq!(seen.of(1), (1..=100).collect::<Vec<_>>());
}

/// Each write of marks lets its keys go on, the last one as well: the next look is in an hour.
async fn a_backlog_of_few_keys_is_drained_without_a_look_in_between(database: &TestDatabase) {
    let rows: Vec<_> = (0..900).map(|n| numbered(n % 3, i32::try_from(n / 3).unwrap(), 1)).collect();
    Sql::new(database).append(&rows).await;
    let seen = Seen::default();
    let hour = Duration::from_hours(1);
    let config = RelayConfig { poll_min: hour, poll_max: hour, ..RelayConfig::default() };
    let running = Running::start(relay(database, seen.router()).with_config(config));
    until("all are dispatched", async || database.count("outbox WHERE status = 'dispatched'").await == 900)
        .await;
    running.stop().await;
    assert!((0..3).all(|key| seen.of(key) == (0..300).collect::<Vec<_>>()));
}

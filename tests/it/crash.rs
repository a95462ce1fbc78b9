use outbox_core::{Envelope, ErrorClass, HandlerError, Relay, RelayConfig, Router, Status};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    database::TestDatabase,
    events::OrderPlaced,
    for_each_database,
    process::Process,
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::ConnectionTrait;

for_each_database! {
    a_relay_that_was_stopped_past_its_lease_changes_nothing_when_it_resumes,
    a_handler_that_kills_its_process_dies_alone,
    a_relay_that_is_killed_loses_nothing,
    a_relay_that_is_killed_at_any_step_of_a_pass_loses_nothing,
}

fn order(order_id: i32, total_cents: i64) -> Envelope {
    Envelope::new(&OrderPlaced { order_id, total_cents }).unwrap()
}

async fn create_tables(database: &TestDatabase) {
    for table in ["handled (order_id INT NOT NULL, attempt INT NOT NULL)", "gate (open INT NOT NULL)"] {
        database.db.execute_unprepared(&format!("CREATE TABLE {table}")).await.unwrap();
    }
}

async fn a_relay_that_was_stopped_past_its_lease_changes_nothing_when_it_resumes(database: &TestDatabase) {
    create_tables(database).await;
    let subject = Sql::new(database);
    let envelope = order(1, -2);
    subject.append(std::slice::from_ref(&envelope)).await;
    let stale = Process::start(&["pass", &database.url]);
    until("the first relay's handler runs", || async { database.count("handled").await == 1 }).await;
    stale.signal("STOP").await;

    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let router = Router::builder().on("tests.handle", accept).build().unwrap();
    let relay = Relay::new(SeaOrmStore::new(database.db.clone()), router)
        .with_config(RelayConfig { name: "second".into(), ..RelayConfig::default() });
    until("the second relay has taken over", || async { relay.pass().await.unwrap().taken_over == 1 }).await;
    let finished = subject.row(&envelope).await;
    assert_eq!((finished.status, finished.attempts, finished.claims), (Status::Dispatched, 2, 2));

    database.db.execute_unprepared("INSERT INTO gate (open) VALUES (1)").await.unwrap();
    stale.signal("CONT").await;
    let output = stale.output().await;
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("lost: 1"), "{report} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(subject.row(&envelope).await, finished);
    let history = subject.history().await;
    assert_eq!(
        history.iter().map(|entry| entry.failed.class).collect::<Vec<_>>(),
        [ErrorClass::LeaseExpired]
    );
}

async fn a_handler_that_kills_its_process_dies_alone(database: &TestDatabase) {
    create_tables(database).await;
    let subject = Sql::new(database);
    let culprit = order(10, -1);
    let mut envelopes: Vec<_> = (1..=20).filter(|n| *n != 10).map(|n| order(n, 1)).collect();
    envelopes.insert(9, culprit.clone());
    subject.append(&envelopes).await;
    // As an operator's supervisor would: started again whenever it dies.
    let mut deaths = 0;
    while !Process::start(&["drain", &database.url]).output().await.status.success() {
        deaths += 1;
        assert!(deaths < 10, "it never gets through");
    }
    assert_eq!(deaths, 3, "as many as attempts are allowed");
    let dead = subject.row(&culprit).await;
    assert_eq!((dead.status, dead.attempts), (Status::Dead, 3));
    assert_eq!(dead.last_error.unwrap().0, ErrorClass::LeaseExpired);
    assert_eq!(database.count("outbox WHERE status = 'dispatched'").await, 19);
    assert_eq!(database.count("handled WHERE order_id = 10").await, 3);
    assert_eq!(database.count("(SELECT DISTINCT order_id FROM handled) AS seen").await, 20);
}

async fn a_relay_that_is_killed_loses_nothing(database: &TestDatabase) {
    create_tables(database).await;
    let subject = Sql::new(database);
    let mut envelopes: Vec<_> = (1..=10).map(|n| order(n, 1)).collect();
    envelopes.push(order(11, -2));
    subject.append(&envelopes).await;
    let killed = Process::start(&["drain", &database.url]);
    until("the handlers have run", || async { database.count("handled").await == 11 }).await;
    killed.signal("KILL").await;
    assert!(!killed.output().await.status.success());
    database.db.execute_unprepared("INSERT INTO gate (open) VALUES (1)").await.unwrap();
    let output = Process::start(&["drain", &database.url]).output().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(database.count("outbox WHERE status = 'dispatched'").await, 11);
}

/// Every place of a pass: before and after each thing that the store is asked.
const STEPS: [&str; 9] = [
    "control:1",
    "take-over:1",
    "taken-over:1",
    "claim:1",
    "claimed:1",
    "mark:1",
    "marked:1",
    "claimed:2",
    "mark:2",
];

async fn a_relay_that_is_killed_at_any_step_of_a_pass_loses_nothing(database: &TestDatabase) {
    create_tables(database).await;
    let subject = Sql::new(database);
    let mut orders = 0;
    for step in STEPS {
        // A relay that is through before it comes to the step gets more to do.
        let mut said = None;
        for _ in 0..10 {
            let envelopes: Vec<_> = (0..150).map(|n| order(orders + n, 1)).collect();
            orders += 150;
            subject.append(&envelopes).await;
            let killed = Process::start(&[step, &database.url]).output().await;
            said = killed.status.success().then(|| String::from_utf8_lossy(&killed.stderr).into_owned());
            if said.is_none() {
                break;
            }
        }
        assert_eq!(said, None, "{step} was never reached");
        let output = Process::start(&["drain", &database.url]).output().await;
        assert!(output.status.success(), "{step}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(database.count("outbox WHERE status = 'dispatched'").await, i64::from(orders), "{step}");
        let handled = database.count("(SELECT DISTINCT order_id FROM handled) AS seen").await;
        assert_eq!(handled, i64::from(orders), "{step}");
        // What ran twice ran in two attempts of one message.
        let repeated =
            "(SELECT order_id FROM handled GROUP BY order_id, attempt HAVING COUNT(*) > 1) AS twice";
        assert_eq!(database.count(repeated).await, 0, "{step}");
    }
}

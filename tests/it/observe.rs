use outbox_core::{
    ErrorClass, HandlerError, Lag, Monitor, OutboxStore, Relay, RetryPolicy, Router, State,
    observe::{Observed, RowEnd, written_events},
    relay::RelayConfig,
    row::DeadLetter,
    store::{EventSignals, OutboxOperator, StoreErrorKind},
    testing::MemoryStore,
};
use outbox_seaorm::append;
use outbox_tests::{
    conformance::{at, claim, take_over},
    database::TestDatabase,
    events::{NoteTaken, OrderPlaced, placed, placed_many},
    for_each_database,
    interposed::{Asked, Interposed},
    running::{Running, fast},
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectionTrait, DatabaseConnection, TransactionTrait};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::oneshot;

for_each_database! {
    somebody_is_called_once_for_a_row_that_died,
    a_row_that_dies_of_crashes_is_told_as_well,
    a_dead_letter_is_told_though_another_mark_of_its_batch_came_too_late,
    every_step_of_a_row_is_told,
    a_monitor_calls_when_rows_are_late_and_when_they_are_in_time_again,
    written_events_are_counted,
}

/// Collects what it is told.
struct Told<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Told<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Told<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn add(&self, told: T) {
        self.0.lock().unwrap().push(told);
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn refusing() -> Router {
    let refuse = |event: OrderPlaced| async move {
        if event.order_id == 1 { Err(HandlerError::terminal("the card was refused")) } else { Ok(()) }
    };
    Router::builder().on("tests.refuse", refuse).build().unwrap()
}

fn letters<S: OutboxStore>(relay: Relay<S>) -> (Relay<S>, Told<DeadLetter>) {
    let told = Told::new();
    let hook = told.clone();
    (relay.on_dead(move |letter| hook.add(letter.clone())), told)
}

async fn somebody_is_called_once_for_a_row_that_died(database: &TestDatabase) {
    let subject = Sql::new(database);
    let rows = subject.append(&placed_many(2)).await;
    let (relay, told) = letters(Relay::new(subject.store().clone(), refusing()));
    let panicking = relay.observe(|_| panic!("an observer must not stop a relay"));
    assert_eq!(panicking.pass().await.unwrap().dead, 1);
    let [letter] = &told.take()[..] else { panic!("one row died") };
    assert_eq!((letter.id, letter.class, letter.attempts), (rows[0], ErrorClass::Terminal, 1));
    assert_eq!(
        letter.to_string(),
        format!(
            "outbox row {} (orders.order-placed.v1) is dead after 1 attempts, terminal: the card was refused",
            rows[0]
        )
    );
    assert_eq!(panicking.pass().await.unwrap().dead, 0);
    assert_eq!(told.len(), 0);
}

async fn a_row_that_dies_of_crashes_is_told_as_well(database: &TestDatabase) {
    let subject = Sql::new(database);
    let rows = subject.append(&placed_many(1)).await;
    claim(&subject, 1, at(-1_000)).await;
    subject.store().take_over(&take_over(at(-500))).await.unwrap().row.unwrap();
    let retry = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    let config = RelayConfig { retry, ..RelayConfig::default() };
    let (relay, told) = letters(Relay::new(subject.store().clone(), refusing()).with_config(config));
    relay.pass_at(at(0)).await.unwrap();
    let [letter] = &told.take()[..] else { panic!("one row died") };
    assert_eq!((letter.id, letter.class), (rows[0], ErrorClass::LeaseExpired));
    assert_eq!(letter.logical_name().as_deref(), Some("orders.order-placed.v1"));
}

async fn a_dead_letter_is_told_though_another_mark_of_its_batch_came_too_late(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(2)).await;
    // While the second row is handled somebody else takes it.
    let handle = |event: OrderPlaced, State(db): State<DatabaseConnection>| async move {
        if event.order_id == 1 {
            return Err(HandlerError::terminal("the card was refused"));
        }
        let steal = "UPDATE outbox SET lease_token = message_id WHERE attempts = 1 AND payload LIKE '%:2,%'";
        let steal = steal.replace("payload LIKE", "CAST(payload AS CHAR(200)) LIKE");
        db.execute_unprepared(&steal).await.map(drop).map_err(HandlerError::from)
    };
    let router = Router::builder().state(database.db.clone()).on("tests.handle", handle).build().unwrap();
    let (relay, told) = letters(Relay::new(subject.store().clone(), router));
    let report = relay.pass().await.unwrap();
    assert_eq!((report.dead, report.lost), (1, 1));
    assert_eq!(told.len(), 1);
}

async fn every_step_of_a_row_is_told(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&[placed(1), placed(2)]).await;
    let told = Told::new();
    let hook = told.clone();
    let relay = Relay::new(subject.store().clone(), refusing()).observe(move |observed| match observed {
        Observed::Claimed { rows, .. } => hook.add(format!("{rows} claimed")),
        Observed::Handled { handler, row, result, .. } => {
            hook.add(format!(
                "{handler} {} {}",
                row.attempts,
                result.map_or_else(ErrorClass::as_str, |()| "done")
            ));
        }
        Observed::Ended(RowEnd::Dispatched { logical_name, age }) => {
            assert!(*age < Duration::from_mins(1));
            hook.add(format!("{logical_name} dispatched"));
        }
        Observed::Ended(RowEnd::Dead(letter)) => hook.add(format!("{} dead", letter.logical_name().unwrap())),
        other => hook.add(format!("{other:?}")),
    });
    relay.pass().await.unwrap();
    let mut steps = told.take();
    let first = steps.remove(steps.iter().position(|step| step == "2 claimed").unwrap());
    steps.retain(|step| step != "0 claimed");
    steps.sort();
    assert_eq!(first, "2 claimed");
    assert_eq!(
        steps,
        [
            "orders.order-placed.v1 dead",
            "orders.order-placed.v1 dispatched",
            "tests.refuse 1 done",
            "tests.refuse 1 terminal",
        ]
    );
}

async fn a_monitor_calls_when_rows_are_late_and_when_they_are_in_time_again(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(1)).await;
    let told = Told::new();
    let hook = told.clone();
    let monitor = Monitor::new(subject.store().clone())
        .every(Duration::from_millis(100))
        .on_signals(|_| panic!("a hook must not stop the monitor"))
        .on_lag(Duration::from_millis(300), move |signals, lag| {
            assert_eq!(lag == Lag::Late, signals.lag() > Duration::from_millis(300));
            hook.add(lag);
        });
    let (stop, stopped) = oneshot::channel::<()>();
    let watching = tokio::spawn(async move { monitor.run(async { drop(stopped.await) }).await });
    until("the row is late", async || told.len() == 1).await;
    let running = Running::start(Relay::new(subject.store().clone(), refusing()).with_config(fast()));
    until("nothing is late", async || told.len() == 2).await;
    running.stop().await;
    drop(stop);
    watching.await.unwrap();
    assert_eq!(told.take(), [Lag::Late, Lag::InTime]);
    assert_eq!(subject.store().signals(None).await.unwrap().total(EventSignals::dead_letters), 1);
}

async fn written_events_are_counted(database: &TestDatabase) {
    // Other tests of this process write as well.
    let before = written_events();
    let tx = database.db.begin().await.unwrap();
    append(&tx, NoteTaken { text: "one".into() }).await.unwrap();
    tx.commit().await.unwrap();
    assert!(written_events() > before);
}

#[tokio::test]
async fn a_store_that_fails_is_told() {
    let memory = MemoryStore::default();
    let away = |asked: Asked<'_>| matches!(asked, Asked::Claim).then_some(StoreErrorKind::Unavailable);
    let told = Told::new();
    let hook = told.clone();
    let relay = Relay::new(Interposed::new(memory, away), refusing()).observe(move |observed| {
        if let Observed::StoreFailed { doing, error } = observed {
            hook.add(format!("{doing}: {error}"));
        }
    });
    let running = Running::start(relay.with_config(fast()));
    until("it is told", async || told.len() > 0).await;
    running.stop().await;
    assert!(told.take()[0].starts_with("claim: "));
}

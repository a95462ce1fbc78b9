use outbox_core::{
    HandlerError, Relay, RelayConfig, Router, Status, relay::HealthStatus, store::StoreErrorKind,
    testing::MemoryStore,
};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    database::{Backend, TestDatabase, connect},
    events::{OrderPlaced, placed, placed_many},
    for_each_database,
    interposed::{Asked, Interposed},
    proxy::Proxy,
    running::{Running, fast},
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::ConnectionTrait;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

for_each_database! {
    a_relay_carries_on_by_itself_when_its_database_comes_back,
    a_relay_on_a_standby_says_that_it_fails_and_carries_on_when_that_is_promoted,
}

fn accepting() -> Router {
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    Router::builder().on("tests.accept", accept).build().unwrap()
}

async fn a_relay_carries_on_by_itself_when_its_database_comes_back(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // There is no connection that could be cut.
    }
    let proxy = Proxy::before(&database.url).await;
    let subject = Sql::new(database);
    subject.append(&placed_many(20)).await;
    let gate = Arc::new(Semaphore::new(0));
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (gate, calls) = (gate.clone(), calls.clone());
        move |_: OrderPlaced| {
            calls.fetch_add(1, SeqCst);
            let gate = gate.clone();
            async move { gate.acquire().await.map(tokio::sync::SemaphorePermit::forget) }
        }
    };
    let router = Router::builder().on("tests.wait", handler).build().unwrap();
    let store = SeaOrmStore::new(connect(&proxy.url, 4).await);
    let relay =
        Relay::new(store, router).with_config(RelayConfig { lease: Duration::from_mins(1), ..fast() });
    let health = relay.health();
    let running = Running::start(relay);
    // Not only claimed: when the answer to a claim is lost, its rows wait for their lease to end.
    until("the handlers run", || async { calls.load(SeqCst) == 20 }).await;
    // In the middle of a pass: handlers run, their marks are still to be written.
    proxy.cut();
    gate.add_permits(1_000);
    until("it says so", || async { matches!(health.status(), HealthStatus::Failing { .. }) }).await;
    subject.append(&placed_many(5)).await;
    proxy.mend();
    until("all are dispatched", || async {
        database.count("outbox WHERE status = 'dispatched'").await == 25
    })
    .await;
    until("it is well", || async { health.is_healthy() }).await;
    running.stop().await;
    assert_eq!(
        database.count("outbox WHERE attempts = 1 AND claims = 1").await,
        25,
        "the marks were only late"
    );
}

async fn a_relay_on_a_standby_says_that_it_fails_and_carries_on_when_that_is_promoted(
    database: &TestDatabase,
) {
    if database.backend != Backend::Postgres {
        return; // Elsewhere read-only is a setting of the whole server, which other tests share.
    }
    let name = database.url.rsplit_once('/').unwrap().1.to_owned();
    let server = connect(&database.url, 1).await;
    let db = connect(&database.url, 4).await;
    let relay = Relay::new(SeaOrmStore::new(db.clone()), accepting())
        .with_config(RelayConfig { lease: Duration::from_mins(1), ..fast() });
    let health = relay.health();
    let running = Running::start(relay);
    until("it works", || async { health.is_healthy() }).await;
    let read_only = async |on: &str| {
        let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = {on}");
        server.execute_unprepared("SET default_transaction_read_only = off").await.unwrap();
        server.execute_unprepared(&sql).await.unwrap();
        // Sessions that are there already keep what they had.
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
        server.execute_unprepared(end).await.unwrap();
    };
    read_only("on").await;
    until("it says so", || async { matches!(health.status(), HealthStatus::Failing { .. }) }).await;
    read_only("off").await;
    let envelope = placed(1);
    let subject = Sql::new(database);
    until("the pool of the test has a session again", || async { database.db.ping().await.is_ok() }).await;
    subject.append(std::slice::from_ref(&envelope)).await;
    until("it carries on", || async { subject.row(&envelope).await.status == Status::Dispatched }).await;
    until("it is well", || async { health.is_healthy() }).await;
    running.stop().await;
    server.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_relay_tells_its_health_and_tries_once_a_second_while_the_database_is_away() {
    let store = MemoryStore::default();
    let (away, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let judge = {
        let (away, asked) = (away.clone(), asked.clone());
        move |_: Asked<'_>| {
            asked.lock().unwrap().push(tokio::time::Instant::now());
            away.load(SeqCst).then_some(StoreErrorKind::Unavailable)
        }
    };
    let relay = Relay::new(Interposed::new(store.clone(), judge), accepting())
        .with_config(RelayConfig { lease: Duration::from_mins(1), ..fast() });
    let health = relay.health();
    assert_eq!(health.status(), HealthStatus::Stopped);
    let running = Running::start(relay);
    until("it works", || async { health.is_healthy() }).await;
    away.store(true, SeqCst);
    tokio::time::sleep(Duration::from_secs(5)).await;
    asked.lock().unwrap().clear();
    store.append(&placed_many(3)).unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let tries = asked.lock().unwrap().clone();
    assert!((90..=600).contains(&tries.len()), "{}", tries.len());
    let gaps = tries.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.min().unwrap() >= Duration::from_secs(1));
    assert!(matches!(health.status(), HealthStatus::Failing { .. }), "{:?}", health.status());
    away.store(false, SeqCst);
    until("it carries on", || async { store.rows().iter().all(|row| row.status == Status::Dispatched) })
        .await;
    until("it is well", || async { health.is_healthy() }).await;
    running.stop().await;
    assert_eq!(health.status(), HealthStatus::Stopped);
}

#[tokio::test]
async fn a_relay_whose_task_is_gone_is_not_healthy() {
    let relay = Relay::new(MemoryStore::default(), accepting());
    let health = relay.health();
    let task = tokio::spawn(async move { relay.run(std::future::pending()).await });
    until("it works", || async { health.is_healthy() }).await;
    task.abort();
    until("it is gone", || async { health.status() == HealthStatus::Stopped }).await;
}

use outbox_core::{Envelope, HandlerError, Relay, RelayConfig, Router, wake};
use outbox_seaorm::{Outbox, SeaOrmStore, TableNames, notify};
use outbox_tests::{
    database::{Backend, TestDatabase},
    events::{OrderPlaced, placed_many},
    for_each_database,
    wait::until,
};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, TransactionTrait,
    sqlx::postgres::{PgListener, PgNotification},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

for_each_database! {
    wake_ups_are_there_or_it_is_said_that_they_are_not,
}

/// Only PostgreSQL has them.
async fn wake_ups_are_there_or_it_is_said_that_they_are_not(database: &TestDatabase) {
    if database.backend == Backend::Postgres {
        what_another_process_tells_wakes_the_relay_and_a_cut_connection_comes_back(database).await;
        many_commits_are_told_by_a_few_wake_ups_after_them(database).await;
    } else {
        let told = notify::tell(&database.db, TableNames::new()).await.unwrap_err().to_string();
        let heard = notify::listen(&database.db, TableNames::new()).await.unwrap_err().to_string();
        assert!(told.contains("has no wake-ups between processes; leave notify::tell"), "{told}");
        assert_eq!(told, heard);
    }
}

/// Stores an event as another process would: nobody here sees the commit.
async fn append_elsewhere(db: &DatabaseConnection, envelopes: &[Envelope]) {
    let tx = db.begin().await.unwrap();
    Outbox::default().append_envelopes(&tx, envelopes).await.unwrap();
    tx.execute_unprepared("SELECT pg_notify('outbox', '')").await.unwrap();
    tx.commit().await.unwrap();
}

async fn what_another_process_tells_wakes_the_relay_and_a_cut_connection_comes_back(database: &TestDatabase) {
    let db = database.db.clone();
    let handled = Arc::new(AtomicU64::new(0));
    let count = handled.clone();
    let accept = move |_: OrderPlaced| {
        count.fetch_add(1, SeqCst);
        async { Ok::<(), HandlerError>(()) }
    };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    // It never polls.
    let hour = Duration::from_hours(1);
    let config = RelayConfig { poll_min: hour, poll_max: hour, ..RelayConfig::default() };
    let relay = Relay::new(SeaOrmStore::new(db.clone()), router).with_config(config);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async move { drop(stopped.await) }).await });
    let listening = tokio::spawn({
        let db = db.clone();
        async move { notify::listen(&db, TableNames::new()).await }
    });
    let listeners = "pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    until("somebody listens", || async { database.count(listeners).await == 1 }).await;
    append_elsewhere(&db, &placed_many(1)).await;
    until("the relay was woken", || async { handled.load(SeqCst) == 1 }).await;

    let cut = format!("SELECT pg_terminate_backend(pid) FROM {listeners}");
    db.execute_unprepared(&cut).await.unwrap();
    append_elsewhere(&db, &placed_many(1)).await;
    until("what was told to nobody is found", || async { handled.load(SeqCst) == 2 }).await;
    append_elsewhere(&db, &placed_many(1)).await;
    until("the relay was woken again", || async { handled.load(SeqCst) == 3 }).await;
    listening.abort();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

async fn many_commits_are_told_by_a_few_wake_ups_after_them(database: &TestDatabase) {
    let db = database.db.clone();
    let mut listener = PgListener::connect_with(db.get_postgres_connection_pool()).await.unwrap();
    listener.listen("outbox").await.unwrap();
    let telling = tokio::spawn({
        let db = db.clone();
        async move { notify::tell(&db, TableNames::new()).await }
    });
    // Told as long as nobody subscribes to them, commits are told to nobody.
    let first = loop {
        wake::committed();
        if let Ok(first) = tokio::time::timeout(Duration::from_millis(20), listener.recv()).await {
            break first.unwrap();
        }
    };
    // Fixed and tiny, whatever was committed.
    assert_eq!(first.payload(), "");
    let started = Instant::now();
    let mut heard = 0_u128;
    for _ in 0..2_000 {
        wake::committed();
        tokio::task::yield_now().await;
    }
    db.execute_unprepared("SELECT pg_notify('outbox', 'end')").await.unwrap();
    loop {
        let next: PgNotification = listener.recv().await.unwrap();
        if next.payload() == "end" {
            break;
        }
        heard += 1;
    }
    // One every five milliseconds, and those that were on their way.
    let most = started.elapsed().as_millis() / 5 + 3;
    assert!(heard <= most, "{heard} wake-ups in {:?}", started.elapsed());
    telling.abort();
}

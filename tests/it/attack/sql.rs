use outbox_core::{HandlerError, OutboxStore, Relay, RelayConfig, Router, Status};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    conformance::{at, claim, take_over},
    database::{Backend, TestDatabase},
    events::{OrderPlaced, placed_many},
    for_each_database,
    running::Running,
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectionTrait, TransactionTrait};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

for_each_database! {
    an_expired_row_that_somebody_else_holds_does_not_keep_the_others_from_being_taken_over,
    a_mark_that_ran_into_a_timeout_is_written_later,
    a_row_that_somebody_holds_does_not_cost_the_others_their_leases,
    a_row_that_somebody_holds_does_not_stop_the_relay,
}

async fn an_expired_row_that_somebody_else_holds_does_not_keep_the_others_from_being_taken_over(
    database: &TestDatabase,
) {
    if database.backend == Backend::Sqlite {
        return; // There is one writer.
    }
    let subject = Sql::new(database);
    let ids = subject.append(&placed_many(3)).await;
    claim(&subject, 3, at(0)).await;
    // A session that hangs in the middle of something: its server has not noticed yet that the client is gone.
    let hanging = database.db.begin().await.unwrap();
    hanging
        .execute_unprepared(&format!("UPDATE outbox SET last_error = 'x' WHERE id = {}", ids[0].0))
        .await
        .unwrap();
    let mut taken = Vec::new();
    for second in [100, 101] {
        let found = subject.store().take_over(&take_over(at(second))).await.unwrap();
        taken.extend(found.row.map(|row| row.id));
    }
    hanging.rollback().await.unwrap();
    assert_eq!(taken, ids[1..]);
}

async fn a_mark_that_ran_into_a_timeout_is_written_later(database: &TestDatabase) {
    if database.backend != Backend::Postgres {
        return; // The limit is a setting of the whole server elsewhere.
    }
    let subject = Sql::new(database);
    subject.append(&placed_many(1)).await;
    let name = database.url.rsplit_once('/').unwrap().1;
    let sql = format!("ALTER DATABASE {name} SET statement_timeout = '200ms'");
    database.db.execute_unprepared(&sql).await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (calls, db) = (calls.clone(), database.db.clone());
        move |_: OrderPlaced| {
            let (calls, db) = (calls.clone(), db.clone());
            async move {
                if calls.fetch_add(1, SeqCst) == 0 {
                    let other = db.begin().await.unwrap();
                    other.execute_unprepared("SELECT id FROM outbox FOR UPDATE").await.unwrap();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        other.rollback().await.unwrap();
                    });
                }
                Ok::<(), HandlerError>(())
            }
        }
    };
    let router = Router::builder().on("tests.lock", handler).build().unwrap();
    let db = database.connect().await;
    let config = RelayConfig { lease: Duration::from_secs(3), ..RelayConfig::default() };
    let running = Running::start(Relay::new(SeaOrmStore::new(db.clone()), router).with_config(config));
    until("it is dispatched", || async { database.count("outbox WHERE status = 'dispatched'").await == 1 })
        .await;
    running.stop().await;
    db.close().await.unwrap();
    assert_eq!(
        calls.load(SeqCst),
        1,
        "the handler had succeeded, and the mark could be written a second later"
    );
    let row = database.count("outbox WHERE status = 'dispatched' AND attempts = 1").await;
    assert_eq!((row, Status::Dispatched), (1, Status::Dispatched));
}

/// A relay whose handlers of orders take so long, and how often each order was handled.
async fn slow_relay(database: &TestDatabase, takes: Duration) -> (Running, Arc<[AtomicUsize; 3]>) {
    let calls: Arc<[AtomicUsize; 3]> = Arc::default();
    let handler = {
        let calls = calls.clone();
        move |event: OrderPlaced| {
            calls[usize::try_from(event.order_id).unwrap()].fetch_add(1, SeqCst);
            async move {
                tokio::time::sleep(takes).await;
                Ok::<(), HandlerError>(())
            }
        }
    };
    let router = Router::builder().on("tests.slow", handler).build().unwrap();
    let poll = Duration::from_millis(10);
    let config = RelayConfig {
        lease: Duration::from_secs(1),
        poll_min: poll,
        poll_max: poll,
        shutdown_timeout: Duration::ZERO,
        ..RelayConfig::default()
    };
    let relay = Relay::new(SeaOrmStore::new(database.connect().await), router).with_config(config);
    (Running::start(relay), calls)
}

async fn a_row_that_somebody_holds_does_not_cost_the_others_their_leases(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // There is one writer.
    }
    let subject = Sql::new(database);
    let ids = subject.append(&placed_many(2)).await;
    let (running, calls) = slow_relay(database, Duration::from_secs(4)).await;
    until("both run", || async { calls[1].load(SeqCst) + calls[2].load(SeqCst) == 2 }).await;
    let hanging = database.db.begin().await.unwrap();
    let sql = format!("SELECT id FROM outbox WHERE id = {} FOR UPDATE", ids[0].0);
    hanging.execute_unprepared(&sql).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    hanging.rollback().await.unwrap();
    let dispatched = format!("outbox WHERE status = 'dispatched' AND id = {}", ids[1].0);
    until("the other is dispatched", || async { database.count(&dispatched).await == 1 }).await;
    running.stop().await;
    assert_eq!(calls[2].load(SeqCst), 1, "nobody held this row");
}

async fn a_row_that_somebody_holds_does_not_stop_the_relay(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // There is one writer.
    }
    let subject = Sql::new(database);
    let ids = subject.append(&placed_many(1)).await;
    let (running, calls) = slow_relay(database, Duration::from_millis(500)).await;
    until("it runs", || async { calls[1].load(SeqCst) == 1 }).await;
    let hanging = database.db.begin().await.unwrap();
    let sql = format!("SELECT id FROM outbox WHERE id = {} FOR UPDATE", ids[0].0);
    hanging.execute_unprepared(&sql).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    subject.append(&[outbox_tests::events::placed(2)]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let handled = calls[2].load(SeqCst);
    hanging.rollback().await.unwrap();
    running.stop().await;
    assert_eq!(handled, 1, "ten seconds passed, and only another row was held");
}

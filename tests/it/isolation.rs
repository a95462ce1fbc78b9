use outbox_core::{
    HandlerError, Relay, RelayConfig, Router,
    decide::{AttemptOutcome, Transition},
    store::MarkReport,
};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    conformance::{claim, mark},
    database::{Backend, TestDatabase, connect},
    entities::Order,
    events::{OrderPlaced, placed_many},
    for_each_database,
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectionTrait, Statement, TransactionTrait};
use std::time::Duration;
use tokio::sync::oneshot;

for_each_database! {
    a_relay_works_read_committed_whatever_the_servers_default_is,
    producers_and_relays_are_not_in_each_others_way,
    a_mark_that_is_the_victim_of_a_deadlock_is_written_all_the_same,
}

fn relay(db: sea_orm::DatabaseConnection, name: &str) -> Relay<SeaOrmStore> {
    let accept = |event: OrderPlaced| async move {
        if event.order_id % 10 == 0 { Err(HandlerError::terminal("a tenth fails")) } else { Ok(()) }
    };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let poll = Duration::from_millis(5);
    let config = RelayConfig {
        name: name.into(),
        batch_size: 20,
        poll_min: poll,
        poll_max: poll,
        ..RelayConfig::default()
    };
    Relay::new(SeaOrmStore::new(db), router).with_config(config)
}

async fn a_relay_works_read_committed_whatever_the_servers_default_is(database: &TestDatabase) {
    if database.backend != Backend::Postgres {
        return; // Only PostgreSQL tells a trigger the level of the transaction that it runs in.
    }
    Sql::new(database).append(&placed_many(40)).await;
    let name = database.url.rsplit_once('/').unwrap().1;
    for sql in [
        "CREATE TABLE seen (level text NOT NULL)",
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO seen VALUES (current_setting('transaction_isolation')); RETURN NULL; END $$",
        "CREATE TRIGGER see AFTER UPDATE ON outbox FOR EACH STATEMENT EXECUTE FUNCTION see()",
        &format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"),
    ] {
        database.db.execute_unprepared(sql).await.unwrap();
    }
    let db = database.connect().await;
    let level = Statement::from_string(db.get_database_backend(), "SHOW transaction_isolation");
    let level = db.query_one_raw(level).await.unwrap().unwrap().try_get_by_index::<String>(0).unwrap();
    assert_eq!(level, "serializable", "the session's default");
    let report = relay(db.clone(), "one").pass().await.unwrap();
    assert_eq!((report.dispatched, report.dead), (18, 2));
    db.close().await.unwrap();
    assert!(database.count("seen").await >= 3);
    assert_eq!(database.count("seen WHERE level <> 'read committed'").await, 0);
}

/// The server's default stays what it is: REPEATABLE READ on MySQL.
async fn producers_and_relays_are_not_in_each_others_way(database: &TestDatabase) {
    let (producers, saves) = if database.backend.has_concurrent_writers() { (8, 60) } else { (2, 40) };
    let relays = if database.backend.has_concurrent_writers() { 4 } else { 1 };
    let (stop, _) = tokio::sync::broadcast::channel::<()>(1);
    let mut running = Vec::new();
    for n in 0..relays {
        let relay = relay(database.connect().await, &format!("relay-{n}"));
        let mut stopped = stop.subscribe();
        running.push(tokio::spawn(async move { relay.run(async { drop(stopped.recv().await) }).await }));
    }
    let mut tasks = tokio::task::JoinSet::new();
    let (failed, mut failures) = oneshot::channel::<String>();
    let failed = std::sync::Arc::new(std::sync::Mutex::new(Some(failed)));
    for producer in 0..producers {
        let (db, failed) = (database.db.clone(), failed.clone());
        tasks.spawn(async move {
            for n in 0..saves {
                if let Err(error) = Order::place(&format!("{producer}-{n}")).save(&db).await
                    && let Some(failed) = failed.lock().unwrap().take()
                {
                    drop(failed.send(error.to_string()));
                }
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(failures.try_recv().ok(), None, "no producer is refused because of a relay");
    let all = i64::from(producers * saves);
    until("everything is finished", || async {
        database.count("outbox WHERE finished_at IS NOT NULL").await == all
    })
    .await;
    drop(stop);
    for relay in running {
        relay.await.unwrap().unwrap();
    }
    assert_eq!(database.count("outbox WHERE attempts <> 1").await, 0);
}

/// How many sessions of this database wait for a row.
async fn waiting(database: &TestDatabase) -> i64 {
    // InnoDB tells the same again while anybody on the server asks more often than every 0.1 s.
    tokio::time::sleep(Duration::from_millis(270)).await;
    database
        .count(match database.backend {
            Backend::MySql => {
                "information_schema.innodb_trx AS t JOIN information_schema.processlist AS p
                     ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
            }
            _ => "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        })
        .await
}

async fn a_mark_that_is_the_victim_of_a_deadlock_is_written_all_the_same(database: &TestDatabase) {
    if !database.backend.has_concurrent_writers() {
        return; // One writer at a time: nobody waits for anybody who waits.
    }
    let subject = Sql::new(database);
    subject.append(&placed_many(30)).await;
    let (token, rows) = claim(&subject, 30, None).await;
    let (first, last) = (rows[0].clone(), rows[29].clone());
    let db = connect(&database.url, 1).await;
    // PostgreSQL ends whoever looks first; MySQL whoever has changed less.
    let _ = db.execute_unprepared("SET deadlock_timeout = '60s'").await;
    let tx = db.begin().await.unwrap();
    let change = |which: String| format!("UPDATE outbox SET correlation_id = 'x' WHERE id {which}");
    tx.execute_unprepared(&change(format!("> {}", first.id))).await.unwrap();
    let marking = tokio::spawn({
        let (database, first, last) = (Sql::new(database), first.clone(), last.clone());
        async move {
            let later = Transition::Retry { delay: Duration::ZERO, outcome: AttemptOutcome::default() };
            mark(&database, token, &[first, last], &later, None).await
        }
    });
    until("the mark waits for the last row", async || waiting(database).await == 1).await;
    tx.execute_unprepared(&change(format!("= {}", first.id))).await.expect("the mark is the victim");
    tx.rollback().await.unwrap();
    assert_eq!(marking.await.unwrap(), MarkReport { marked: 2, lost: 0 });
    db.close().await.unwrap();
}

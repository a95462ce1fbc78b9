use outbox_core::{
    HandlerError, MessageId, OutboxStore, Relay, RelayConfig, RetryPolicy, Router, Status,
    store::{Finished, Purge},
};
use outbox_seaorm::{Aggregate, EventBuffer, Outbox, SeaOrmStore, TableNames, migrate};
use outbox_tests::{
    conformance::at,
    database::{Backend, TestDatabase, connect},
    entities::notes,
    events::{CustomerMoved, OrderPlaced},
    for_each_database,
};
use sea_orm::{ConnectionTrait, DatabaseConnection, Set, TransactionTrait};
use std::time::Duration;

for_each_database! {
    every_statement_honours_schema_and_prefix,
    marks_go_where_the_row_was_claimed,
}

/// Mixed case, a space, a quote of each kind, a reserved word.
const ODD: TableNames = TableNames::new().schema("My \"App`").prefix("Select ");

/// A note whose events go to the odd tables.
#[derive(Debug, Aggregate)]
#[aggregate(name = "note", tables = ODD)]
struct OddNote {
    #[aggregate(root)]
    root: notes::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<notes::Model>,
}

/// A connection on which the odd schema exists, and on PostgreSQL nothing is found without naming its schema.
async fn odd_schema(database: &TestDatabase, name: &str) -> DatabaseConnection {
    match database.backend {
        Backend::Postgres => {
            database.db.execute_unprepared("CREATE SCHEMA \"My \"\"App`\"").await.unwrap();
            connect(&format!("{}?options[search_path]=public", database.url), 5).await
        }
        Backend::MySql => {
            for sql in ["DROP DATABASE IF EXISTS `My \"App```", "CREATE DATABASE `My \"App```"] {
                database.db.execute_unprepared(sql).await.unwrap();
            }
            database.connect().await
        }
        Backend::Sqlite => {
            // An attached database belongs to its connection, so there is one.
            let db = connect(&database.url, 1).await;
            let file = std::env::temp_dir().join(format!("{name}.attached"));
            drop(std::fs::remove_file(&file));
            db.execute_unprepared(&format!("ATTACH '{}' AS \"My \"\"App`\"", file.display())).await.unwrap();
            db
        }
    }
}

fn table(database: &TestDatabase, table: &str) -> String {
    match database.backend {
        Backend::MySql => format!("`My \"App```.`Select {table}`"),
        _ => format!("\"My \"\"App`\".\"Select {table}\""),
    }
}

async fn count(db: &DatabaseConnection, from: String) -> i64 {
    outbox_tests::database::count(db, &from).await.unwrap()
}

async fn every_statement_honours_schema_and_prefix(database: &TestDatabase) {
    let db = odd_schema(database, &format!("obx_names_{}", std::process::id())).await;
    migrate(&db, ODD).await.unwrap();
    migrate(&db, ODD).await.unwrap();
    let mut note = OddNote::new(notes::ActiveModel { title: Set("a".into()), body: Set("b".into()) });
    note.raise(OrderPlaced { order_id: 1, total_cents: 1 });
    note.save(&db).await.unwrap();
    let tx = outbox_tests::database::begin_immediate(&db).await;
    let outbox = Outbox::new(ODD);
    outbox.append(&tx, CustomerMoved { customer_id: 7 }).await.unwrap();
    outbox.append_once(&tx, MessageId::new(), OrderPlaced { order_id: 2, total_cents: 1 }).await.unwrap();
    tx.commit().await.unwrap();
    let joined = db.begin().await.unwrap();
    note.raise(OrderPlaced { order_id: 3, total_cents: 1 });
    note.save(&joined).await.unwrap();
    joined.commit().await.unwrap();
    note.discard_events();

    // The second order fails for good, the others are dispatched; one relay vanishes on the way.
    let handle = |event: OrderPlaced| async move {
        if event.order_id == 2 { Err(HandlerError::transient("no")) } else { Ok(()) }
    };
    let router = Router::builder().on("tests.handle", handle).build().unwrap();
    let store = SeaOrmStore::with_tables(db.clone(), ODD);
    let lost = outbox_tests::conformance::request(1, at(0));
    assert_eq!(store.claim(&lost).await.unwrap().rows.len(), 1);
    let retry = RetryPolicy { max_attempts: 1, ..RetryPolicy::default() };
    let relay = Relay::new(store, router).with_config(RelayConfig { retry, ..RelayConfig::default() });
    let report = relay.pass_at(at(100)).await.unwrap();
    assert_eq!((report.claimed, report.dispatched, report.dead), (3, 2, 1));
    // Past the earlier due rows the vanished one has come to the front.
    let report = relay.pass_at(at(200)).await.unwrap();
    assert_eq!(report.taken_over + report.claimed, 0, "it was taken over in the first pass");
    let rows = table(database, "outbox");
    assert_eq!(count(&db, format!("{rows} WHERE status = 'dispatched'")).await, 2);
    assert_eq!(count(&db, table(database, "outbox_attempts")).await, 2);
    assert_eq!(count(&db, table(database, "outbox_keys")).await, 1);
    let purge =
        Purge { finished: Finished::Dispatched, older_than: Duration::ZERO, limit: 10, now: at(1000) };
    assert_eq!(relay.store().purge(&purge).await.unwrap().rows, 2);
    assert_eq!((count(&db, rows).await, database.count("outbox").await), (2, 0));
    if database.backend == Backend::MySql {
        db.execute_unprepared("DROP DATABASE `My \"App```").await.unwrap();
    }
    db.close().await.unwrap();
}

async fn marks_go_where_the_row_was_claimed(database: &TestDatabase) {
    const SECOND: TableNames = TableNames::new().prefix("second_");
    migrate(&database.db, SECOND).await.unwrap();
    // Both tables have a row 1.
    let mut ids = Vec::new();
    for tables in [TableNames::new(), SECOND] {
        let tx = database.db.begin().await.unwrap();
        ids.push(Outbox::new(tables).append(&tx, OrderPlaced { order_id: 1, total_cents: 1 }).await.unwrap());
        tx.commit().await.unwrap();
    }
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let second = SeaOrmStore::with_tables(database.db.clone(), SECOND);
    assert_eq!(Relay::new(second.clone(), router).pass().await.unwrap().dispatched, 1);
    let first = SeaOrmStore::new(database.db.clone());
    assert_eq!(first.find(ids[0]).await.unwrap().unwrap().status, Status::Pending);
    assert_eq!(second.find(ids[1]).await.unwrap().unwrap().status, Status::Dispatched);
}

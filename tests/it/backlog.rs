use outbox_core::{OutboxStore, Relay, RelayConfig, Router, State};
use outbox_seaorm::{SeaOrmStore, append};
use outbox_tests::{
    conformance::{at, claim},
    database::{Backend, TestDatabase},
    events::{OrderPlaced, placed_many},
    for_each_database,
    running::{Running, fast},
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement, TransactionTrait};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::SeqCst},
};

for_each_database! {
    rows_that_were_dumped_and_restored_drain,
    a_relay_owns_no_more_of_a_backlog_than_some_batches,
    an_old_snapshot_that_is_held_open_holds_up_nothing,
}

fn counting(count: &Arc<AtomicI64>) -> Router {
    let handle = |_: OrderPlaced, State(count): State<Arc<AtomicI64>>| async move {
        count.fetch_add(1, SeqCst);
        Ok::<(), outbox_core::HandlerError>(())
    };
    Router::builder().state(count.clone()).on("tests.count", handle).build().unwrap()
}

/// Copies the rows of a database into another one, as a dump does: values only, and the next id.
async fn restore(from: &TestDatabase, into: &TestDatabase) {
    let all = |sql: String| Statement::from_string(from.db.get_database_backend(), sql);
    match from.backend {
        Backend::Postgres => {
            for table in ["outbox", "outbox_attempts"] {
                let sql = format!("SELECT COALESCE(json_agg(t), '[]')::text FROM {table} AS t");
                let rows = from.db.query_one_raw(all(sql)).await.unwrap().unwrap();
                let rows: String = rows.try_get_by_index(0).unwrap();
                let insert = format!(
                    "INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::{table}, $1::json)"
                );
                let backend = into.db.get_database_backend();
                into.db
                    .execute_raw(Statement::from_sql_and_values(backend, insert, [rows.into()]))
                    .await
                    .unwrap();
                let next = format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT COALESCE(MAX(id), 1) FROM {table}))"
                );
                into.db.execute_unprepared(&next).await.unwrap();
            }
        }
        Backend::MySql => {
            let columns = "SELECT GROUP_CONCAT(column_name) AS c FROM information_schema.columns
                WHERE table_schema = DATABASE() AND table_name = 'outbox' AND generation_expression IS NULL";
            let columns = from.db.query_one_raw(all(columns.to_owned())).await.unwrap().unwrap();
            let columns: String = columns.try_get("", "c").unwrap();
            let name = from.url.rsplit('/').next().unwrap();
            let copy = format!("INSERT INTO outbox ({columns}) SELECT {columns} FROM `{name}`.outbox");
            into.db.execute_unprepared(&copy).await.unwrap();
        }
        Backend::Sqlite => {
            let path = from.url.trim_start_matches("sqlite://").split('?').next().unwrap();
            let db: &DatabaseConnection = &outbox_tests::database::connect(&into.url, 1).await;
            let attach = format!("ATTACH DATABASE '{path}' AS dumped");
            for sql in
                [&*attach, "INSERT INTO main.outbox SELECT * FROM dumped.outbox", "DETACH DATABASE dumped"]
            {
                db.execute_unprepared(sql).await.unwrap();
            }
        }
    }
}

async fn rows_that_were_dumped_and_restored_drain(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(7)).await;
    // Some are in flight when the dump is made, of a relay that the restored database will never see.
    assert_eq!(claim(&subject, 3, at(-3_600 * 24 * 365 * 20)).await.1.len(), 0, "nothing was due then");
    assert_eq!(claim(&subject, 3, None).await.1.len(), 3);
    let name = format!("restored::{}", database.url.rsplit('/').next().unwrap());
    let restored = TestDatabase::ready(database.backend, &name).await;
    restore(database, &restored).await;
    let expire = "UPDATE outbox SET lease_expires_at = available_at WHERE status = 'claimed'";
    restored.db.execute_unprepared(expire).await.unwrap();
    let tx = restored.db.begin().await.unwrap();
    append(&tx, OrderPlaced { order_id: 8, total_cents: 1 }).await.unwrap();
    tx.commit().await.unwrap();
    let count = Arc::default();
    let relay = Relay::new(SeaOrmStore::new(restored.db.clone()), counting(&count)).with_config(fast());
    let running = Running::start(relay);
    until("all are dispatched", async || restored.count("outbox WHERE status = 'dispatched'").await == 8)
        .await;
    running.stop().await;
    assert_eq!(count.load(SeqCst), 8);
    assert_eq!(database.count("outbox WHERE status = 'pending'").await, 4, "the dumped one was left alone");
    restored.drop().await;
}

async fn a_relay_owns_no_more_of_a_backlog_than_some_batches(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(1_000)).await;
    let most = Arc::new(AtomicI64::new(0));
    let look = |_: OrderPlaced, State(look): State<(DatabaseConnection, Arc<AtomicI64>)>| async move {
        let owned = outbox_tests::database::count(&look.0, "outbox WHERE status = 'claimed'").await?;
        look.1.fetch_max(owned, SeqCst);
        Ok::<(), outbox_core::HandlerError>(())
    };
    let state = (database.connect().await, most.clone());
    let router = Router::builder().state(state.clone()).on("tests.look", look).build().unwrap();
    let config = RelayConfig { batch_size: 10, ..fast() };
    let running = Running::start(Relay::new(subject.store().clone(), router).with_config(config));
    until("all are dispatched", async || database.count("outbox WHERE status = 'dispatched'").await == 1_000)
        .await;
    running.stop().await;
    state.0.close().await.unwrap();
    // When the handlers are fast half of four batches when four more are claimed, and at most eight writes of which only
    // the marks are left.
    let most = most.load(SeqCst);
    assert!((1..=300).contains(&most), "{most} rows were owned at once");
}

async fn an_old_snapshot_that_is_held_open_holds_up_nothing(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(5)).await;
    let old = database.connect().await;
    let snapshot = old.begin_with_config(Some(sea_orm::IsolationLevel::RepeatableRead), None).await.unwrap();
    assert_eq!(outbox_tests::database::count(&snapshot, "outbox").await.unwrap(), 5);
    let count = Arc::default();
    let relay = Relay::new(subject.store().clone(), counting(&count)).with_config(fast());
    let running = Running::start(relay);
    for _ in 0..20 {
        subject.append(&placed_many(10)).await;
    }
    until("all are dispatched", async || database.count("outbox WHERE status = 'dispatched'").await == 205)
        .await;
    assert_eq!(outbox_tests::database::count(&snapshot, "outbox WHERE status = 'pending'").await.unwrap(), 5);
    snapshot.rollback().await.unwrap();
    running.stop().await;
    assert_eq!(count.load(SeqCst), 205);
    old.close().await.unwrap();
    subject.store().check().await.unwrap();
}

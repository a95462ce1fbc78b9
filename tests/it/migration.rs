use outbox_core::{Relay, Router};
use outbox_seaorm::{Outbox, SeaOrmStore, TableNames, migrate, migration::exclusively, migrations};
use outbox_tests::{
    database::{Backend, TestDatabase, count},
    events::{OrderPlaced, placed},
    for_each_database, for_each_empty_database,
    process::Process,
    subject::{Sql, Subject},
};
use sea_orm::{ConnectionTrait, DbErr, Statement, TransactionTrait};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

for_each_empty_database! {
    the_migrations_run_in_a_migrator_of_the_users_own,
    migrations_can_be_taken_back_and_run_again,
    ten_processes_migrate_an_empty_database_at_once,
    ten_processes_migrate_an_older_database_at_once,
    two_outboxes_live_in_one_database,
}

for_each_database! {
    states_that_must_not_be_cannot_be_written,
    no_index_names_a_column_that_a_claim_changes,
}

struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        migrations()
    }
}

const TABLES: [&str; 6] =
    ["outbox", "outbox_attempts", "inbox", "outbox_keys", "outbox_lanes", "outbox_control"];

async fn check_all(database: &TestDatabase) {
    for table in TABLES {
        let expected = match table {
            "outbox_lanes" => 256,
            // The lock of the purge.
            "outbox_control" => 1,
            _ => 0,
        };
        assert_eq!(database.count(table).await, expected, "{table}");
    }
    Sql::new(database).append(&[placed(1)]).await;
    let accept = |_: OrderPlaced| async { Ok::<(), outbox_core::HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let report = Relay::new(SeaOrmStore::new(database.db.clone()), router).pass().await.unwrap();
    assert_eq!(report.dispatched, 1);
    database.db.execute_unprepared("DELETE FROM outbox").await.unwrap();
}

async fn the_migrations_run_in_a_migrator_of_the_users_own(database: &TestDatabase) {
    Migrator::up(&database.db, None).await.unwrap();
    check_all(database).await;
    exclusively(&database.db, async |tx| Migrator::up(tx, None).await).await.unwrap();
    // Another bookkeeping, the same tables: every migration is idempotent.
    migrate(&database.db, TableNames::new()).await.unwrap();
    check_all(database).await;
}

async fn migrations_can_be_taken_back_and_run_again(database: &TestDatabase) {
    for _ in 0..2 {
        Migrator::up(&database.db, None).await.unwrap();
        check_all(database).await;
        Migrator::down(&database.db, None).await.unwrap();
        assert!(count(&database.db, "outbox").await.is_err());
    }
}

async fn ten_processes(database: &TestDatabase) {
    let processes: Vec<_> = (0..10).map(|_| Process::start(&["migrate", &database.url])).collect();
    for process in processes {
        let output = process.output().await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    check_all(database).await;
}

async fn ten_processes_migrate_an_empty_database_at_once(database: &TestDatabase) {
    for _ in 0..3 {
        ten_processes(database).await;
        exclusively(&database.db, async |tx| Migrator::down(tx, None).await).await.ok();
        for table in TABLES.iter().chain(&["outbox_migrations"]) {
            database.db.execute_unprepared(&format!("DROP TABLE IF EXISTS {table}")).await.unwrap();
        }
    }
}

async fn ten_processes_migrate_an_older_database_at_once(database: &TestDatabase) {
    migrate(&database.db, TableNames::new()).await.unwrap();
    for _ in 0..3 {
        // As the release before the last migration left it.
        let last = "DELETE FROM outbox_migrations WHERE version LIKE '%create_outbox_control'";
        database.db.execute_unprepared(last).await.unwrap();
        database.db.execute_unprepared("DROP TABLE outbox_control").await.unwrap();
        ten_processes(database).await;
    }
}

async fn two_outboxes_live_in_one_database(database: &TestDatabase) {
    const ORDER: TableNames = TableNames::new().prefix("Order ");
    let db = &database.db;
    migrate(db, TableNames::new()).await.unwrap();
    migrate(db, ORDER).await.unwrap();
    let tx = db.begin().await.unwrap();
    Outbox::new(ORDER).append(&tx, OrderPlaced { order_id: 1, total_cents: 1 }).await.unwrap();
    tx.commit().await.unwrap();
    let accept = |_: OrderPlaced| async { Ok::<(), outbox_core::HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let pass = async |store| Relay::new(store, router.clone()).pass().await.unwrap().dispatched;
    assert_eq!(pass(SeaOrmStore::new(db.clone())).await, 0);
    assert_eq!(pass(SeaOrmStore::with_tables(db.clone(), ORDER)).await, 1);
    let quote = if database.backend == Backend::MySql { '`' } else { '"' };
    assert_eq!(database.count(&format!("{quote}Order outbox{quote} WHERE status = 'dispatched'")).await, 1);
    assert_eq!(database.count("outbox").await, 0);
}

async fn states_that_must_not_be_cannot_be_written(database: &TestDatabase) {
    Sql::new(database).append(&[placed(1)]).await;
    let update = async |set: &str| database.db.execute_unprepared(&format!("UPDATE outbox SET {set}")).await;
    let illegal = [
        "status = 'claimed'",
        "status = 'dispatched'",
        "status = 'dead', error_class = 'terminal'",
        "status = 'dead', finished_at = created_at",
        "status = 'dispatched', finished_at = created_at, error_class = 'terminal'",
        "status = 'unknown'",
        "finished_at = created_at",
        "lease_expires_at = created_at",
        "claimed_by = 'me'",
        "resolved_at = created_at",
        "aggregate_type = 'order'",
        "ordering_key = 'a key'",
        "lane = 256, ordering_key = 'a key'",
        "event_version = 0",
        "attempts = -1",
        "replay_of = 1",
    ];
    for set in illegal {
        assert!(update(set).await.is_err(), "{set}");
    }
    assert!(update("last_error = 'x'").await.is_ok());
}

/// On PostgreSQL an index on such a column, even in its predicate, would end the cheap update of a claim.
async fn no_index_names_a_column_that_a_claim_changes(database: &TestDatabase) {
    if database.backend != Backend::Postgres {
        return;
    }
    let sql = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'outbox'";
    let rows =
        database.db.query_all_raw(Statement::from_string(sea_orm::DbBackend::Postgres, sql)).await.unwrap();
    assert_eq!(rows.len(), 9);
    for row in rows {
        let definition: String = row.try_get("", "indexdef").unwrap();
        let definition = definition.split_once(" USING ").unwrap().1;
        for column in ["status", "attempts", "claims", "claimed_by", "lease_", "isolated"] {
            assert!(!definition.contains(column), "{definition}");
        }
    }
}

#[tokio::test]
async fn an_error_of_the_users_own_migration_leaves_nothing_behind_where_ddl_is_transactional() {
    for (backend, name) in
        [(Backend::Sqlite, "users_migration_sqlite"), (Backend::Postgres, "users_migration_postgres")]
    {
        let database = TestDatabase::empty(backend, name).await;
        let failed = exclusively(&database.db, async |tx| {
            Migrator::up(tx, None).await?;
            Err(DbErr::Custom("mine".to_owned()))
        });
        assert_eq!(failed.await, Err(DbErr::Custom("mine".to_owned())));
        assert!(count(&database.db, "outbox").await.is_err());
        database.drop().await;
    }
}

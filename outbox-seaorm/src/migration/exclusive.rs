//! One migrating process at a time.

use crate::dialect::begin_writer;
use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, Statement};

/// The number of PostgreSQL's advisory lock: "outbox" and a 1, as ASCII. Part of no interface but ours.
const ADVISORY_LOCK: i64 = 0x006f_7574_626f_7831;
/// MySQL's named lock is server-wide, so it carries the database's name.
const NAMED_LOCK: &str = "CONCAT('outbox-migration:', LEFT(DATABASE(), 40))";
/// How long MySQL waits for another process that migrates, in seconds.
const NAMED_LOCK_WAIT: u32 = 120;

/// Runs migrations while no other process does, on one connection.
///
/// SeaORM's `Migrator` takes no lock, so of several processes that start at once on an empty database all but one
/// fail. This waits for the others instead:
///
/// ```no_run
/// # use sea_orm_migration::{MigrationTrait, MigratorTrait};
/// # struct Migrator;
/// # impl MigratorTrait for Migrator { fn migrations() -> Vec<Box<dyn MigrationTrait>> { outbox_seaorm::migrations() } }
/// # async fn start(db: sea_orm::DatabaseConnection) -> Result<(), sea_orm::DbErr> {
/// outbox_seaorm::migration::exclusively(&db, async |tx| Migrator::up(tx, None).await).await
/// # }
/// ```
///
/// On PostgreSQL and SQLite everything happens in one transaction, so a failing migration leaves nothing behind;
/// MySQL commits after each DDL statement by itself. Do not use it with migrations that cannot run in a transaction
/// (PostgreSQL's `CREATE INDEX CONCURRENTLY`).
///
/// # Errors
///
/// What the migrations return, or the database's error.
///
/// # Cancel safety
///
/// Dropped on MySQL, the lock is freed only when the pool closes that connection.
pub async fn exclusively(
    db: &DatabaseConnection,
    migrate: impl AsyncFnOnce(&DatabaseTransaction) -> Result<(), DbErr>,
) -> Result<(), DbErr> {
    let tx = begin_writer(db).await?;
    lock(&tx).await?;
    let migrated = migrate(&tx).await;
    unlock(&tx).await?;
    match migrated {
        Ok(()) => tx.commit().await,
        Err(error) => {
            tx.rollback().await?;
            Err(error)
        }
    }
}

/// Waits for other transactions that migrate; freed at the end of the transaction. PostgreSQL only.
pub(super) async fn lock_in_transaction(db: &impl ConnectionTrait) -> Result<(), DbErr> {
    db.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")).await.map(drop)
}

async fn lock(tx: &DatabaseTransaction) -> Result<(), DbErr> {
    match ConnectionTrait::get_database_backend(tx) {
        DbBackend::Postgres => lock_in_transaction(tx).await,
        DbBackend::MySql => {
            let sql = format!("SELECT GET_LOCK({NAMED_LOCK}, {NAMED_LOCK_WAIT}) AS got");
            let row = tx.query_one_raw(Statement::from_string(DbBackend::MySql, sql)).await?;
            let got = row.map(|row| row.try_get::<Option<i64>>("", "got")).transpose()?.flatten();
            if got == Some(1) {
                return Ok(());
            }
            Err(DbErr::Migration(format!(
                "another process has been migrating this database for more than {NAMED_LOCK_WAIT} s; nothing was changed, start again when it is done"
            )))
        }
        // BEGIN IMMEDIATE is the lock.
        _ => Ok(()),
    }
}

async fn unlock(tx: &DatabaseTransaction) -> Result<(), DbErr> {
    if ConnectionTrait::get_database_backend(tx) == DbBackend::MySql {
        let sql = format!("SELECT RELEASE_LOCK({NAMED_LOCK}) AS freed");
        tx.query_one_raw(Statement::from_string(DbBackend::MySql, sql)).await?;
    }
    Ok(())
}

//! Whether the tables are there and as this version needs them.

use super::SeaOrmStore;
use crate::{
    convert::store_error,
    dialect::{Fault, fault},
};
use outbox_core::{StoreError, store::StoreErrorKind};
use sea_orm::{ConnectionTrait, DbErr, Statement};
use std::sync::atomic::Ordering;

/// Each table with all of its columns.
const TABLES: [(&str, &str); 6] = [
    (
        "outbox",
        "id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version, ordering_key, lane, \
         payload, headers, correlation_id, causation_id, status, attempts, claims, available_at, claimed_by, \
         lease_token, lease_expires_at, isolated, occurred_at, created_at, finished_at, completed_handlers, last_error, \
         error_class, replay_of, replayed_by, replay_reason, resolved_at",
    ),
    (
        "outbox_attempts",
        "id, outbox_id, message_id, attempt, relay, handler_id, error_class, error, failed_at",
    ),
    ("inbox", "consumer, message_id, consumed_at"),
    ("outbox_keys", "ordering_key, locked_at"),
    ("outbox_lanes", "lane"),
    ("outbox_control", "kind, name, value, set_by, reason, updated_at, expires_at"),
];

pub(super) async fn check(store: &SeaOrmStore) -> Result<(), StoreError> {
    for (table, columns) in TABLES {
        let table = store.names.qualified(table);
        probe(store, "1", &table).await.map_err(|error| trouble(error, &table, "is missing"))?;
        probe(store, columns, &table)
            .await
            .map_err(|error| trouble(error, &table, "is older than this version"))?;
    }
    let isolation = isolation(store).await.map_err(|error| store_error("read the isolation level", error))?;
    if let Some(isolation) = isolation {
        let is_read_committed = isolation.to_ascii_uppercase().replace('-', " ") == "READ COMMITTED";
        store.is_read_committed.store(is_read_committed, Ordering::Relaxed);
    }
    Ok(())
}

/// The isolation level of a statement outside a transaction, where there are levels.
pub(crate) async fn isolation(store: &SeaOrmStore) -> Result<Option<String>, DbErr> {
    let Some(sql) = store.dialect.isolation else { return Ok(None) };
    let row = store.db.query_one_raw(Statement::from_string(store.dialect.backend, sql)).await?;
    row.map(|row| row.try_get_by_index(store.dialect.isolation_column)).transpose()
}

async fn probe(store: &SeaOrmStore, columns: &str, table: &str) -> Result<(), DbErr> {
    let sql = format!("SELECT {columns} FROM {table} WHERE 1 = 0");
    store.db.query_all_raw(Statement::from_string(store.dialect.backend, sql)).await.map(drop)
}

fn trouble(error: DbErr, table: &str, what: &str) -> StoreError {
    if fault(&error) != Fault::Schema {
        return store_error("check the outbox's tables", error);
    }
    let message = format!(
        "table {table} {what}: run the outbox's migrations, by adding `outbox_seaorm::migrations()` to your Migrator or calling `outbox_seaorm::migrate`"
    );
    StoreError::new(StoreErrorKind::Setup, message).with_source(error)
}

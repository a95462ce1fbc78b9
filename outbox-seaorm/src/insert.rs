//! The INSERT of new messages.

use crate::{
    dialect::{Dialect, Fault, fault},
    error::SaveError,
    sql::{Hole, Holes, statement},
    tables::TableNames,
};
use outbox_core::{Envelope, MessageId, RowId, observe::count_written};
use sea_orm::{ConnectionTrait, DbErr, Statement, Value};
use std::collections::BTreeSet;

const COLUMNS: &str = "message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version, \
     ordering_key, lane, payload, headers, correlation_id, causation_id, occurred_at";
const COLUMN_COUNT: usize = 13;

/// SQLite takes 32,766 bound values, the others 65,535; one bound fits all.
const MAX_ROWS: usize = 32_766 / COLUMN_COUNT;
/// MySQL's packet is 16 MiB by default, 4 MiB on older ones; a single payload is at most 1 MiB.
const MAX_BYTES: usize = 3 * 1024 * 1024;

/// Writes messages with one INSERT (more only beyond 2,520 rows or 3 MiB), in their order. Every one is checked before
/// anything is written, and the keys that have no row of their own are locked. `tx` is surely a transaction: whoever
/// calls this has seen to it.
pub(crate) async fn write(
    tx: &impl ConnectionTrait,
    tables: TableNames,
    envelopes: &[Envelope],
) -> Result<(), SaveError> {
    envelopes.iter().try_for_each(Envelope::check)?;
    lock_keys(tx, tables, envelopes).await?;
    let dialect = Dialect::of(tx.get_database_backend())?;
    for part in parts(envelopes) {
        tx.execute_raw(insert_statement(dialect, tables, part, "")).await.map_err(SaveError::of_outbox)?;
    }
    count_written(envelopes.len());
    Ok(())
}

/// As [`write`], unless the message's id is there already; returns the row of whoever wrote it, and whether it was this
/// call.
pub(crate) async fn write_once(
    tx: &impl ConnectionTrait,
    tables: TableNames,
    envelope: &Envelope,
) -> Result<(RowId, bool), SaveError> {
    envelope.check()?;
    lock_keys(tx, tables, std::slice::from_ref(envelope)).await?;
    let dialect = Dialect::of(tx.get_database_backend())?;
    let insert = insert_statement(dialect, tables, std::slice::from_ref(envelope), dialect.insert_once);
    let is_new = match tx.execute_raw(insert).await {
        Ok(result) => {
            let is_new = result.rows_affected() == 1;
            count_written(usize::from(is_new));
            is_new
        }
        Err(error) if fault(&error) == Fault::Duplicate => false,
        Err(error) => return Err(SaveError::of_outbox(error)),
    };
    let holes = Holes::default().with("message_id", envelope.message_id.as_uuid());
    let sql = "SELECT id FROM {outbox} WHERE message_id = :message_id";
    let select = statement(dialect.backend, &tables.for_backend(dialect.backend), sql, &holes);
    let row =
        tx.query_one_raw(select).await.map_err(SaveError::of_outbox)?.ok_or(DbErr::RecordNotInserted)?;
    Ok((RowId(row.try_get("", "id")?), is_new))
}

/// Which of the messages are stored.
pub(crate) async fn stored(
    tx: &impl ConnectionTrait,
    tables: TableNames,
    ids: &[MessageId],
) -> Result<BTreeSet<MessageId>, SaveError> {
    let backend = tx.get_database_backend();
    let names = tables.for_backend(backend);
    let mut found = BTreeSet::new();
    for part in ids.chunks(MAX_ROWS) {
        let ids = part.iter().map(|id| Value::from(id.as_uuid())).collect();
        let holes = Holes::default().with("ids", Hole::Values(ids));
        let sql = "SELECT message_id FROM {outbox} WHERE message_id IN (:ids)";
        let rows =
            tx.query_all_raw(statement(backend, &names, sql, &holes)).await.map_err(SaveError::of_outbox)?;
        for row in rows {
            found.insert(MessageId::from(row.try_get::<uuid::Uuid>("", "message_id")?));
        }
    }
    Ok(found)
}

/// Locks the ordering keys that no aggregate's row stands for, so that ids are given out in the order of the commits.
async fn lock_keys(
    tx: &impl ConnectionTrait,
    tables: TableNames,
    envelopes: &[Envelope],
) -> Result<(), SaveError> {
    // Sorted: two transactions that lock the same keys must do so in one order.
    let keys: BTreeSet<&str> = envelopes.iter().filter_map(Envelope::free_key).collect();
    let dialect = Dialect::of(tx.get_database_backend())?;
    for part in keys.into_iter().collect::<Vec<_>>().chunks(MAX_ROWS) {
        let holes =
            Holes::default().with("keys", Hole::Rows(part.iter().map(|key| vec![(*key).into()]).collect()));
        let names = tables.for_backend(dialect.backend);
        let lock = statement(dialect.backend, &names, dialect.lock_keys, &holes);
        tx.execute_raw(lock).await.map_err(SaveError::of_outbox)?;
    }
    Ok(())
}

fn insert_statement(
    dialect: &Dialect,
    tables: TableNames,
    envelopes: &[Envelope],
    once: &'static str,
) -> Statement {
    let rows = envelopes.iter().map(|envelope| row(dialect, envelope)).collect();
    let holes = Holes::default()
        .with("columns", Hole::Sql(COLUMNS))
        .with("rows", Hole::Each(dialect.insert_row, rows))
        .with("once", Hole::Sql(once));
    let sql = "INSERT INTO {outbox} (:columns) VALUES :rows :once";
    statement(dialect.backend, &tables.for_backend(dialect.backend), sql, &holes)
}

fn row(dialect: &Dialect, envelope: &Envelope) -> Holes {
    Holes::default()
        .with("message_id", envelope.message_id.as_uuid())
        .with("event_type", envelope.event_type.as_ref())
        .with("event_version", i32::from(envelope.event_version))
        .with("aggregate_type", envelope.aggregate_type.clone())
        .with("aggregate_id", envelope.aggregate_id.clone())
        .with("aggregate_version", envelope.aggregate_version)
        .with("ordering_key", envelope.ordering_key.clone())
        .with("lane", envelope.lane().map(i16::from))
        .with("payload", envelope.payload.as_str())
        .with("headers", envelope.headers_json())
        .with("correlation_id", envelope.correlation_id.clone())
        .with("causation_id", envelope.causation_id.map(MessageId::as_uuid))
        .with("occurred_at", dialect.time(envelope.occurred_at))
}

/// Cuts a save into statements that every database takes.
fn parts(envelopes: &[Envelope]) -> Vec<&[Envelope]> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (i, envelope) in envelopes.iter().enumerate() {
        let size = envelope.payload.len();
        if i > start && (i - start == MAX_ROWS || bytes + size > MAX_BYTES) {
            parts.push(&envelopes[start..i]);
            (start, bytes) = (i, 0);
        }
        bytes += size;
    }
    if start < envelopes.len() {
        parts.push(&envelopes[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelopes(sizes: &[usize]) -> Vec<Envelope> {
        let envelope = |size: &usize| Envelope::stored(MessageId::new(), "a.b".into(), 1, "x".repeat(*size));
        sizes.iter().map(envelope).collect()
    }

    fn lengths(envelopes: &[Envelope]) -> Vec<usize> {
        parts(envelopes).into_iter().map(<[_]>::len).collect()
    }

    #[test]
    fn a_save_is_cut_only_where_a_database_would_refuse() {
        assert_eq!(lengths(&[]), [] as [usize; 0]);
        assert_eq!(lengths(&envelopes(&[100; 500])), [500]);
        assert_eq!(lengths(&envelopes(&vec![1; MAX_ROWS + 1])), [MAX_ROWS, 1]);
        assert_eq!(lengths(&envelopes(&[MAX_BYTES / 2, MAX_BYTES / 2, 1, MAX_BYTES, 1])), [2, 1, 1, 1]);
    }
}

//! claimed → dispatched | pending | dead, under the token of the claim.

use super::{SeaOrmStore, retried};
use crate::convert::store_error;
use chrono::{DateTime, Utc};
use outbox_core::{
    StoreError,
    decide::{FailedAttempt, Transition},
    row::{LeaseToken, Progress, RowId, Status},
    store::{Mark, MarkReport},
};
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Failed rows that are marked in one transaction at most.
const MAX_FAILED: usize = 50;

/// The marks of one claim.
#[derive(Default)]
struct Group<'a> {
    dispatched: Vec<RowId>,
    deleted: Vec<RowId>,
    /// Dispatched or deleted rows that replay a dead letter.
    replays: Vec<&'a Mark>,
    released: Vec<RowId>,
    failed: Vec<(RowId, &'a Transition)>,
}

pub(super) async fn mark(
    store: &SeaOrmStore,
    marks: &[Mark],
    now: Option<DateTime<Utc>>,
) -> Result<MarkReport, StoreError> {
    let mut groups: BTreeMap<LeaseToken, Group<'_>> = BTreeMap::new();
    for mark in marks {
        let Mark { id, token, transition, replay_of } = mark;
        let group = groups.entry(*token).or_default();
        match transition {
            Transition::Dispatched | Transition::Deleted if replay_of.is_some() => group.replays.push(mark),
            Transition::Dispatched => group.dispatched.push(*id),
            Transition::Deleted => group.deleted.push(*id),
            Transition::Release => group.released.push(*id),
            failed => group.failed.push((*id, failed)),
        }
    }
    let mut marked = 0;
    for (token, Group { dispatched, deleted, replays, released, failed }) in &groups {
        marked += guarded(store, store.dialect.mark_dispatched, *token, dispatched, now).await?;
        marked += guarded(store, store.dialect.mark_deleted, *token, deleted, now).await?;
        for mark in replays {
            marked += retried(|| mark_replay(store, mark, now)).await?;
        }
        marked += guarded(store, store.dialect.release, *token, released, now).await?;
        // A mark may carry two texts of 2,000 characters for each of its handlers; a packet of MySQL holds 4 MiB or more.
        for part in failed.chunks(MAX_FAILED) {
            marked += mark_failed(store, *token, part, now).await?;
        }
    }
    Ok(MarkReport { marked, lost: marks.len() as u64 - marked })
}

/// One statement for all rows of one kind.
async fn guarded(
    store: &SeaOrmStore,
    sql: &str,
    token: LeaseToken,
    rows: &[RowId],
    now: Option<DateTime<Utc>>,
) -> Result<u64, StoreError> {
    if rows.is_empty() {
        return Ok(0);
    }
    // Sorted: two transactions that touch the same rows must do so in one order.
    let mut ids: Vec<_> = rows.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    let holes = store.dialect.at(now).with("ids", store.dialect.ids(ids.into_iter())).with("token", token.0);
    let write = || async { store.write(sql, &holes).await.map_err(|error| store_error("mark rows", error)) };
    retried(write).await
}

/// A replay that is dispatched resolves the dead letters that it stands for, in the same transaction.
async fn mark_replay(
    store: &SeaOrmStore,
    mark: &Mark,
    now: Option<DateTime<Utc>>,
) -> Result<u64, StoreError> {
    let is_deleted = mark.transition == Transition::Deleted;
    let sql = if is_deleted { store.dialect.mark_deleted } else { store.dialect.mark_dispatched };
    let ids = store.dialect.ids([mark.id.0].into_iter());
    let holes = store.dialect.at(now).with("ids", ids).with("token", mark.token.0);
    let written: Result<u64, DbErr> = async {
        let tx = store.begin().await?;
        let marked = store.execute(&tx, sql, &holes).await?;
        if marked > 0 {
            store.resolve_chain(&tx, mark.replay_of.map(|id| id.0), now).await?;
        }
        tx.commit().await?;
        Ok(marked)
    }
    .await;
    written.map_err(|error| store_error("mark a replay", error))
}

/// Failed rows take a transaction: their history and their mark stand or fall together.
async fn mark_failed(
    store: &SeaOrmStore,
    token: LeaseToken,
    rows: &[(RowId, &Transition)],
    now: Option<DateTime<Utc>>,
) -> Result<u64, StoreError> {
    if rows.is_empty() {
        return Ok(0);
    }
    let mut ids: Vec<_> = rows.iter().map(|(id, _)| id.0).collect();
    ids.sort_unstable();
    let (marks, failed) = described(rows);
    let holes = store
        .dialect
        .at(now)
        .with("ids", store.dialect.ids(ids.into_iter()))
        .with("token", token.0)
        .with("marks", Value::Array(marks).to_string())
        .with("failed", Value::Array(failed).to_string());
    let write = || async {
        let written: Result<u64, DbErr> = async {
            let tx = store.begin().await?;
            tx.query_all_raw(store.statement(store.dialect.lock_failed, &holes)).await?;
            store.execute(&tx, store.dialect.record_failed, &holes).await?;
            let marked = store.execute(&tx, store.dialect.mark_failed, &holes).await?;
            tx.commit().await?;
            Ok(marked)
        }
        .await;
        written.map_err(|error| store_error("mark failed rows", error))
    };
    retried(write).await
}

/// The rows and their failed attempts as JSON, which each database takes apart into a table.
fn described(rows: &[(RowId, &Transition)]) -> (Vec<Value>, Vec<Value>) {
    let (mut marks, mut attempts) = (Vec::new(), Vec::new());
    for (id, transition) in rows {
        let (status, given_back, delay, outcome) = match transition {
            Transition::Retry { delay, outcome } => (Status::Pending, 0, delay.as_secs_f64(), outcome),
            Transition::Wait { delay, outcome } => (Status::Pending, 1, delay.as_secs_f64(), outcome),
            Transition::Dead(outcome) => (Status::Dead, 0, 0.0, outcome),
            _ => continue,
        };
        let last_error = outcome.last_error.as_ref();
        marks.push(json!({
            "id": id.0,
            "status": status.as_str(),
            "given_back": given_back,
            "delay": delay,
            "progress": progress_text(&outcome.progress),
            "class": last_error.map(|(class, _)| class.as_str()),
            "error": last_error.map(|(_, error)| error.as_str()),
        }));
        attempts.extend(outcome.failed.iter().map(|attempt| attempt_row(*id, attempt)));
    }
    (marks, attempts)
}

fn attempt_row(id: RowId, failed: &FailedAttempt) -> Value {
    let FailedAttempt { handler, class, error } = failed;
    json!({ "id": id.0, "handler": handler, "class": class.as_str(), "error": error })
}

fn progress_text(progress: &Progress) -> Option<String> {
    (!progress.is_empty()).then(|| json!(progress).to_string())
}

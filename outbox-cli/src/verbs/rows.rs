//! Verbs that take ids: `outbox skip`, `outbox retry-now`, `outbox release`.

use super::{Call, by, filter};
use crate::{
    args::{Nothing, Rows, WhoWhy},
    failure::{Exit, Failure},
    table::count,
};
use outbox_core::{
    RowId,
    store::{OperateError, OutboxOperator},
};
use serde_json::{Value, json};

/// What became of one row.
pub(super) struct Done {
    pub(super) id: RowId,
    /// What is told of a row that was changed, for people and for programs.
    pub(super) told: Result<(String, Value), OperateError>,
}

/// Tells what became of each row. One that was refused does not hide the others, and makes the exit code 1. A database
/// that fails ends it.
pub(super) fn tell(call: &mut Call<'_>, done: Vec<Done>) -> Result<Exit, Failure> {
    let is_refused = done.iter().any(|done| done.told.is_err());
    let line = |done: &Done| match &done.told {
        Ok((text, _)) => format!("{}: {text}", done.id),
        Err(error) => format!("{}: refused: {error}", done.id),
    };
    let entry = |done: &Done| match &done.told {
        Ok((_, value)) => {
            let mut entry = json!({ "id": done.id.to_string(), "done": true });
            if let (Some(entry), Some(more)) = (entry.as_object_mut(), value.as_object()) {
                entry.extend(more.clone());
            }
            entry
        }
        Err(error) => json!({ "id": done.id.to_string(), "done": false, "error": error.to_string() }),
    };
    call.tell(
        || done.iter().map(line).collect::<Vec<_>>().join("\n"),
        || json!({ "results": done.iter().map(entry).collect::<Vec<_>>() }),
    );
    let failed = done.into_iter().filter_map(|done| done.told.err());
    match failed.into_iter().find(|error| matches!(error, OperateError::Store(_))) {
        Some(error) => Err(error.into()),
        None if is_refused => Ok(Exit::Refused),
        None => Ok(Exit::Fine),
    }
}

pub(super) async fn skip(call: &mut Call<'_>, rows: &Rows<WhoWhy>) -> Result<Exit, Failure> {
    let by = by(rows.more.by.as_deref())?;
    OperateError::check_texts(&by, rows.more.reason.as_deref())?;
    confirm(
        call,
        &rows.ids,
        "These rows will never be dispatched, and their keys go on without them",
        rows.yes,
    )
    .await?;
    let mut done = Vec::new();
    for id in ids(&rows.ids) {
        let skipped = call.target.store.skip(id, &by, rows.more.reason.as_deref(), None).await;
        done.push(Done { id, told: skipped.map(|()| ("skipped".to_owned(), json!({}))) });
    }
    tell(call, done)
}

pub(super) async fn retry_now(call: &mut Call<'_>, rows: &Rows<Nothing>) -> Result<Exit, Failure> {
    let mut done = Vec::new();
    for id in ids(&rows.ids) {
        let due = call.target.store.retry_now(id, None).await;
        done.push(Done { id, told: due.map(|()| ("due now".to_owned(), json!({}))) });
    }
    tell(call, done)
}

pub(super) async fn release(call: &mut Call<'_>, rows: &Rows<Nothing>) -> Result<Exit, Failure> {
    confirm(
        call,
        &rows.ids,
        "These rows are taken from the relay that claimed them, if its lease has expired",
        rows.yes,
    )
    .await?;
    let mut done = Vec::new();
    for id in ids(&rows.ids) {
        let released = call.target.store.release(id, None).await;
        done.push(Done { id, told: released.map(|()| ("released".to_owned(), json!({}))) });
    }
    tell(call, done)
}

fn ids(ids: &[i64]) -> impl Iterator<Item = RowId> {
    ids.iter().copied().map(RowId)
}

/// Shows the rows before they are changed.
async fn confirm(call: &mut Call<'_>, said: &[i64], what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for id in ids(said) {
        match call.target.store.show(id, false).await {
            Ok(shown) => rows.push(shown.row),
            Err(OperateError::Store(error)) => return Err(error.into()),
            Err(error) => missing.push(error.to_string()),
        }
    }
    if rows.is_empty() {
        return Err(Failure::refused(missing.join("\n")));
    }
    let mut lines = vec![format!("{what} ({}, {}):", count(rows.len() as u64, "row"), call.target.place)];
    lines.push(filter::table(&rows).text());
    lines.extend(missing);
    call.console.confirm(&lines.join("\n"), yes)
}

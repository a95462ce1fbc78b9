//! Looking at rows.

use super::{SeaOrmStore, signals};
use crate::{
    convert::{Reader, store_error},
    dialect::ago,
    sql::{Hole, Holes},
};
use chrono::{DateTime, Utc};
use outbox_core::{
    MessageId, RowId, Status, StoreError,
    row::UnreadableRow,
    store::{
        Contents, ListFilter, ListRequest, ListedAttempt, ListedRow, OperateError, Page, Shown, Standing,
    },
};
use sea_orm::{ConnectionTrait, DbErr, QueryResult};
use uuid::Uuid;

/// How far a chain of replays is followed in each direction.
const MAX_CHAIN: usize = 1_000;

/// A part of the table that can be walked by itself. What a filter asks for is looked for in as few of them as will do,
/// so that finished rows cost nothing where there are only live ones, or dead letters, to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// All of it, along the ids.
    All,
    /// One row, by an index of its own.
    Message,
    Live,
    Unresolved,
    Resolved,
}

fn parts(filter: &ListFilter) -> &'static [Part] {
    match filter.standing {
        _ if filter.message_id.is_some() => &[Part::Message],
        Standing::Live | Standing::Status(Status::Pending | Status::Claimed) => &[Part::Live],
        Standing::Unresolved | Standing::Replayable => &[Part::Unresolved],
        Standing::Status(Status::Dead) => &[Part::Unresolved, Part::Resolved],
        // Only live rows have an owner, and dispatched rows keep no error.
        _ if filter.claimed_by.is_some() => &[Part::Live],
        _ if filter.failed || filter.class.is_some() => &[Part::Live, Part::Unresolved, Part::Resolved],
        _ => &[Part::All],
    }
}

pub(super) async fn list(store: &SeaOrmStore, request: &ListRequest<'_>) -> Result<Page, StoreError> {
    let failed = |error| store_error("list rows", error);
    let limit = request.bounded_limit() as usize;
    if limit == 0 {
        return Ok(Page::default());
    }
    let at = signals::clock(store, request.now).await.map_err(failed)?;
    let mut found = Vec::new();
    for part in parts(request.filter) {
        let holes = Holes::default()
            .with("contents", Hole::Sql(if request.contents { store.dialect.operate.contents } else { "" }))
            .with("conditions", Hole::All(conditions(store, request, *part, at)))
            .with("order", Hole::Sql(order(*part, request.newest_first)))
            .with("limit", i64::from(request.bounded_limit()));
        let rows = store.db.query_all_raw(store.statement(store.dialect.operate.list, &holes)).await;
        for row in rows.map_err(failed)? {
            let reader = Reader::of(&row)?;
            found.push((reader.id(), read(&reader, request.contents)));
        }
    }
    found.sort_by_key(|(id, _)| *id);
    if request.newest_first {
        found.reverse();
    }
    let is_full = found.len() >= limit;
    found.truncate(limit);
    let mut page = Page { next: found.last().map(|(id, _)| *id).filter(|_| is_full), ..Page::default() };
    for (id, row) in found {
        match row {
            Ok(row) => page.rows.push(row),
            Err(error) => {
                page.unreadable.push(UnreadableRow { id, attempts: 0, error: error.to_string() });
            }
        }
    }
    Ok(page)
}

/// Along the ids only where the whole table is walked. A sum is in no index: otherwise a planner takes the primary key,
/// to find what comes first in it soon, and walks all finished rows instead.
fn order(part: Part, newest_first: bool) -> &'static str {
    match (part, newest_first) {
        (Part::All, false) => "o.id",
        (Part::All, true) => "o.id DESC",
        (_, false) => "o.id + 0",
        (_, true) => "o.id + 0 DESC",
    }
}

fn conditions(
    store: &SeaOrmStore,
    request: &ListRequest<'_>,
    part: Part,
    at: DateTime<Utc>,
) -> Vec<(&'static str, Holes)> {
    let none = Holes::default;
    let mut all = vec![match part {
        Part::All | Part::Message => ("1 = 1", none()),
        Part::Live => ("o.finished_at IS NULL", none()),
        Part::Unresolved => (store.dialect.operate.is_unresolved, none()),
        Part::Resolved => ("o.resolved_at IS NOT NULL", none()),
    }];
    let filter = request.filter;
    match filter.standing {
        Standing::Live => all.push(("o.finished_at IS NULL", none())),
        Standing::Status(status) => all.push(("o.status = :status", none().with("status", status.as_str()))),
        Standing::Unresolved | Standing::Replayable => {
            all.push((store.dialect.operate.is_unresolved, none()));
        }
        _ => {}
    }
    if filter.standing == Standing::Replayable {
        all.push(("NOT EXISTS (SELECT 1 FROM {outbox} AS x WHERE x.replay_of = o.id)", none()));
    }
    if filter.failed {
        all.push(("o.error_class IS NOT NULL", none()));
    }
    let class = filter.class.map(|class| class.as_str().to_owned());
    for (condition, value) in [
        ("o.event_type = :v", &filter.event_type),
        ("o.error_class = :v", &class),
        ("o.ordering_key = :v", &filter.ordering_key),
        ("o.aggregate_type = :v", &filter.aggregate_type),
        ("o.aggregate_id = :v", &filter.aggregate_id),
        ("o.correlation_id = :v", &filter.correlation_id),
        ("o.claimed_by = :v", &filter.claimed_by),
    ] {
        // No column can have a NUL, and PostgreSQL refuses to compare with one.
        let compared = |value: &str| (condition, none().with("v", value));
        let condition = |value: &str| if value.contains('\0') { ("1 = 0", none()) } else { compared(value) };
        all.extend(value.as_deref().map(condition));
    }
    if let Some(version) = filter.event_version {
        all.push(("o.event_version = :v", none().with("v", i32::from(version))));
    }
    if let Some(id) = filter.message_id {
        all.push(("o.message_id = :v", none().with("v", id.as_uuid())));
    }
    let ago = |age| store.dialect.time(ago(at, age));
    if let Some(age) = filter.older_than {
        all.push(("o.created_at < :v", none().with("v", ago(age))));
    }
    if let Some(age) = filter.newer_than {
        all.push(("o.created_at > :v", none().with("v", ago(age))));
    }
    if let Some(after) = request.after {
        let condition = if request.newest_first { "o.id < :v" } else { "o.id > :v" };
        all.push((condition, none().with("v", after.0)));
    }
    all
}

fn read(reader: &Reader<'_>, contents: bool) -> Result<ListedRow, StoreError> {
    let message_id = MessageId::from(reader.get::<Uuid>("message_id")?);
    let event = (reader.get("event_type")?, reader.get("event_version")?);
    let mut row = ListedRow::pending(reader.id(), message_id, event, reader.get("created_at")?);
    row.aggregate_type = reader.get("aggregate_type")?;
    row.aggregate_id = reader.get("aggregate_id")?;
    row.aggregate_version = reader.get("aggregate_version")?;
    row.ordering_key = reader.get("ordering_key")?;
    row.correlation_id = reader.get("correlation_id")?;
    row.causation_id = reader.get::<Option<Uuid>>("causation_id")?.map(MessageId::from);
    row.status = reader.get("status")?;
    row.attempts = reader.get("attempts")?;
    row.claims = reader.get("claims")?;
    row.available_at = reader.get("available_at")?;
    row.claimed_by = reader.get("claimed_by")?;
    row.lease_expires_at = reader.get("lease_expires_at")?;
    row.occurred_at = reader.get("occurred_at")?;
    row.finished_at = reader.get("finished_at")?;
    row.resolved_at = reader.get("resolved_at")?;
    row.completed_handlers = reader.get("completed_handlers")?;
    row.error_class = reader.get("error_class")?;
    row.last_error = reader.get("last_error")?;
    row.replay_of = reader.get::<Option<i64>>("replay_of")?.map(RowId);
    row.replayed_as = reader.get::<Option<i64>>("replayed_as")?.map(RowId);
    row.operated_by = reader.get("replayed_by")?;
    row.reason = reader.get("replay_reason")?;
    if contents {
        row.contents = Some(Contents { payload: reader.get("payload")?, headers: reader.get("headers")? });
    }
    Ok(row)
}

pub(super) async fn show(store: &SeaOrmStore, id: RowId, contents: bool) -> Result<Shown, OperateError> {
    let failed = |error| store_error("show a row", error);
    let holes = Holes::default()
        .with("contents", Hole::Sql(if contents { store.dialect.operate.contents } else { "" }))
        .with("conditions", Hole::All(vec![("o.id = :v", Holes::default().with("v", id.0))]))
        .with("order", Hole::Sql("o.id"))
        .with("limit", 1_i64);
    let row = store.db.query_one_raw(store.statement(store.dialect.operate.list, &holes)).await;
    let row = row.map_err(failed)?.ok_or(OperateError::NotFound(id))?;
    let row = read(&Reader::of(&row)?, contents)?;
    let attempts = attempts(store, id).await.map_err(failed)?;
    let chain = chain(store, &row).await.map_err(failed)?;
    Ok(Shown::new(row, attempts, chain))
}

async fn attempts(store: &SeaOrmStore, id: RowId) -> Result<Vec<ListedAttempt>, DbErr> {
    let sql = "SELECT attempt, relay, handler_id, error_class, error, failed_at
          FROM {attempts} WHERE outbox_id = :id ORDER BY id DESC LIMIT :limit";
    let holes = Holes::default().with("id", id.0).with("limit", i64::from(Shown::MAX_ATTEMPTS));
    let attempt = |row: &QueryResult| {
        Ok::<_, DbErr>(ListedAttempt {
            attempt: row.try_get("", "attempt")?,
            relay: row.try_get("", "relay")?,
            handler: row.try_get("", "handler_id")?,
            class: row.try_get("", "error_class")?,
            error: row.try_get("", "error")?,
            failed_at: row.try_get("", "failed_at")?,
        })
    };
    store.db.query_all_raw(store.statement(sql, &holes)).await?.iter().rev().map(attempt).collect()
}

/// What the row replays, and what that replays in turn; then the replays of the row.
async fn chain(store: &SeaOrmStore, row: &ListedRow) -> Result<Vec<RowId>, DbErr> {
    let mut chain = vec![row.id];
    let mut next = row.replay_of;
    while let Some((id, replay_of)) = neighbour(store, "WHERE id = :id", next).await? {
        chain.push(id);
        next = replay_of;
        if chain.len() > MAX_CHAIN {
            break;
        }
    }
    chain.reverse();
    let mut next = Some(row.id);
    for _ in 0..MAX_CHAIN {
        let Some((id, _)) = neighbour(store, "WHERE replay_of = :id", next).await? else { break };
        chain.push(id);
        next = Some(id);
    }
    Ok(chain)
}

async fn neighbour(
    store: &SeaOrmStore,
    which: &'static str,
    id: Option<RowId>,
) -> Result<Option<(RowId, Option<RowId>)>, DbErr> {
    let Some(id) = id else { return Ok(None) };
    let which = Hole::All(vec![(which, Holes::default().with("id", id.0))]);
    let statement =
        store.statement("SELECT id, replay_of FROM {outbox} :which", &Holes::default().with("which", which));
    let row = store.db.query_one_raw(statement).await?;
    let found = |row: QueryResult| {
        Ok::<_, DbErr>((
            RowId(row.try_get("", "id")?),
            row.try_get::<Option<i64>>("", "replay_of")?.map(RowId),
        ))
    };
    row.map(found).transpose()
}

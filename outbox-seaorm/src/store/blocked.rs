//! Ordering keys that wait, and for what.

use super::{SeaOrmStore, ordered, signals};
use crate::{
    convert::{logical_name, store_error},
    sql::Holes,
};
use chrono::{DateTime, Utc};
use outbox_core::{
    OutboxStore, RowId, StoreError,
    store::{BlockedKey, Cause, Control},
};
use sea_orm::{ConnectionTrait, DbErr, QueryResult};
use serde_json::json;

/// Keys that are looked up at once.
const KEYS: usize = 200;

pub(super) async fn blocked_keys(
    store: &SeaOrmStore,
    limit: u32,
    now: Option<DateTime<Utc>>,
) -> Result<Vec<BlockedKey>, StoreError> {
    let control = store.control(now).await?;
    let found: Result<Vec<BlockedKey>, DbErr> = async {
        let at = signals::clock(store, now).await?;
        let (mut blocked, _) = scan(store, &control, limit as usize, at).await?;
        for key in &mut blocked {
            key.followers = followers(store, key).await?;
        }
        Ok(blocked)
    }
    .await;
    found.map_err(|error| store_error("list blocked keys", error))
}

/// The first so many keys that wait, without their followers, and whether these are all.
pub(super) async fn scan(
    store: &SeaOrmStore,
    control: &Control,
    limit: usize,
    at: DateTime<Utc>,
) -> Result<(Vec<BlockedKey>, bool), DbErr> {
    let proceed: Vec<_> = control.proceed().into_iter().collect();
    let mut blocked = dead(store, limit, &proceed).await?;
    let mut after = None;
    for _ in 0..ordered::PAGES {
        if blocked.len() >= limit {
            break;
        }
        let keys = ordered::walk(store, after.as_deref(), KEYS).await?;
        after = keys.last().cloned();
        if keys.is_empty() {
            return Ok((blocked, true));
        }
        let holes = ordered::keys_holes(store, Some(at), keys.iter(), &proceed);
        for row in store.db.query_all_raw(store.statement(store.dialect.heads, &holes)).await? {
            blocked.extend(waiting(&row, control)?);
        }
    }
    blocked.truncate(limit);
    Ok((blocked, false))
}

async fn dead(store: &SeaOrmStore, limit: usize, proceed: &[&str]) -> Result<Vec<BlockedKey>, DbErr> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let holes = Holes::default().with("limit", limit).with("proceed", json!(proceed).to_string());
    let rows = store.db.query_all_raw(store.statement(store.dialect.dead_heads, &holes)).await?;
    let keys = rows.iter().map(|row| blocked(row, Cause::Dead, row.try_get("", "since")?));
    let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
    keys.dedup_by(|next, first| next.key == first.key);
    Ok(keys)
}

/// A first row that is neither in flight nor ready.
fn waiting(row: &QueryResult, control: &Control) -> Result<Option<BlockedKey>, DbErr> {
    let name = logical_name(row)?;
    let (due, created): (DateTime<Utc>, DateTime<Utc>) =
        (row.try_get("", "available_at")?, row.try_get("", "created_at")?);
    if control.is_read(&name) == Some(false) {
        return blocked(row, Cause::Unroutable, created).map(Some);
    }
    if row.try_get::<bool>("", "backoff")? {
        return blocked(row, Cause::Backoff { until: due }, created).map(Some);
    }
    Ok(None)
}

fn blocked(row: &QueryResult, cause: Cause, since: DateTime<Utc>) -> Result<BlockedKey, DbErr> {
    Ok(BlockedKey {
        key: row.try_get("", "k")?,
        head: RowId(row.try_get("", "id")?),
        logical_name: logical_name(row)?,
        cause,
        since,
        followers: 0,
    })
}

async fn followers(store: &SeaOrmStore, key: &BlockedKey) -> Result<u64, DbErr> {
    let holes = Holes::default()
        .with("key", key.key.as_str())
        .with("id", key.head.0)
        .with("limit", i64::from(BlockedKey::MAX_FOLLOWERS));
    let row = store.db.query_one_raw(store.statement(store.dialect.followers, &holes)).await?;
    let count = row.map_or(Ok(0_i64), |row| row.try_get("", "n"))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

//! Ordering keys that wait, and for what.

use super::{SeaOrmStore, ordered};
use crate::{convert::store_error, sql::Holes};
use chrono::{DateTime, Utc};
use outbox_core::{
    OutboxStore, RowId, StoreError,
    store::{BlockedKey, Cause},
};
use sea_orm::{ConnectionTrait, DbErr, QueryResult};
use std::collections::BTreeSet;

/// Keys that are looked up at once.
const KEYS: usize = 200;

pub(super) async fn blocked_keys(
    store: &SeaOrmStore,
    limit: u32,
    now: Option<DateTime<Utc>>,
) -> Result<Vec<BlockedKey>, StoreError> {
    let control = store.control(now).await?;
    // Without any relay nobody can tell what is read.
    let read: Option<BTreeSet<String>> = (!control.relays.is_empty())
        .then(|| control.relays.into_iter().flat_map(|relay| relay.handlers.into_keys()).collect());
    let found: Result<Vec<BlockedKey>, DbErr> = async {
        let mut blocked = dead(store, limit).await?;
        let mut after = None;
        for _ in 0..ordered::PAGES {
            let keys = ordered::walk(store, after.as_deref(), KEYS).await?;
            after = keys.last().cloned();
            if keys.is_empty() || blocked.len() >= limit as usize {
                break;
            }
            let holes = ordered::keys_holes(store, now, keys.iter(), &[]);
            for row in store.db.query_all_raw(store.statement(store.dialect.heads, &holes)).await? {
                blocked.extend(waiting(&row, read.as_ref())?);
            }
        }
        blocked.truncate(limit as usize);
        for key in &mut blocked {
            key.followers = followers(store, key).await?;
        }
        Ok(blocked)
    }
    .await;
    found.map_err(|error| store_error("list blocked keys", error))
}

async fn dead(store: &SeaOrmStore, limit: u32) -> Result<Vec<BlockedKey>, DbErr> {
    let holes = Holes::default().with("limit", i64::from(limit));
    let rows = store.db.query_all_raw(store.statement(store.dialect.dead_heads, &holes)).await?;
    rows.iter().map(|row| blocked(row, Cause::Dead, row.try_get("", "since")?)).collect()
}

/// A first row that is neither in flight nor ready.
fn waiting(row: &QueryResult, read: Option<&BTreeSet<String>>) -> Result<Option<BlockedKey>, DbErr> {
    let name = logical_name(row)?;
    let (due, created): (DateTime<Utc>, DateTime<Utc>) =
        (row.try_get("", "available_at")?, row.try_get("", "created_at")?);
    if read.is_some_and(|read| !read.contains(&name)) {
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

fn logical_name(row: &QueryResult) -> Result<String, DbErr> {
    let (event, version): (String, i32) = (row.try_get("", "event_type")?, row.try_get("", "event_version")?);
    Ok(format!("{event}.v{version}"))
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

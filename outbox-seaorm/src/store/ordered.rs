//! pending → claimed, in the order of each key.
//!
//! Keys with something to do are looked up without any lock. Then, in one READ COMMITTED transaction:
//!
//! 1. the lanes of those keys that are free are locked, so that nobody else claims rows of these keys, and nobody waits;
//! 2. in a new statement, which sees what was committed before the lanes were locked, the first rows of each key are
//!    read, unless a dead letter blocks it;
//! 3. these rows are locked, waiting for marks that are on their way, and read again as they are then;
//! 4. the unbroken run at the beginning of each key is claimed.
//!
//! Passing over locked rows in 3 would break the order.

use super::SeaOrmStore;
use crate::{
    convert::{add_claimed, claimed_row, store_error},
    sql::Holes,
};
use chrono::{DateTime, Utc};
use outbox_core::{
    Status, StoreError,
    decide::order::{Standing, prefix, rows_per_key},
    store::{ClaimRequest, Claimed, OrderedClaim, OrderedRequest},
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Keys that are looked up at once, beyond those that are wanted, and how often at most: blocked keys must not make a
/// claim endless.
const SPARE: usize = 20;
pub(super) const PAGES: usize = 10;

/// Rows of one key that a claim takes at most. MySQL walks along a key in a recursion, which it ends after a thousand.
const MAX_RUN: usize = 500;

/// The first live row of a key, or a replay.
struct Head {
    key: String,
    id: i64,
    lane: i64,
    is_ready: bool,
    is_expired: bool,
}

/// What a claim is about to take.
#[derive(Default)]
struct Plan {
    /// Keys whose first row is ready, in their order, with their lanes.
    keys: Vec<(String, i64)>,
    replays: Vec<i64>,
}

pub(super) async fn claim(
    store: &SeaOrmStore,
    request: &OrderedRequest<'_>,
) -> Result<OrderedClaim, StoreError> {
    let mut found = OrderedClaim::default();
    let plan = plan(store, request, &mut found).await.map_err(failed)?;
    if !plan.keys.is_empty() || !plan.replays.is_empty() {
        found.claimed = take(store, &request.claim, plan).await?;
    }
    Ok(found)
}

async fn plan(
    store: &SeaOrmStore,
    request: &OrderedRequest<'_>,
    found: &mut OrderedClaim,
) -> Result<Plan, DbErr> {
    let limit = request.claim.limit as usize;
    let mut plan = Plan::default();
    for replay in replays(&store.db, store, &request.claim).await? {
        if replay.is_expired {
            found.expired.push(replay.key);
        } else if replay.is_ready && plan.replays.len() < limit {
            plan.replays.push(replay.id);
        }
    }
    let room = limit - plan.replays.len();
    found.next = request.after.map(str::to_owned);
    if room == 0 {
        return Ok(plan);
    }
    for _ in 0..PAGES {
        let keys = walk(store, found.next.as_deref(), room - plan.keys.len() + SPARE).await?;
        found.next = keys.last().cloned();
        if keys.is_empty() {
            break;
        }
        for head in heads(&store.db, store, &request.claim, &keys).await? {
            if head.is_expired {
                found.expired.push(head.key);
            } else if head.is_ready {
                plan.keys.push((head.key.clone(), head.lane));
                if plan.keys.len() == room {
                    found.next = Some(head.key);
                    return Ok(plan);
                }
            }
        }
    }
    Ok(plan)
}

/// The next so many keys, or fewer.
pub(super) async fn walk(
    store: &SeaOrmStore,
    after: Option<&str>,
    keys: usize,
) -> Result<Vec<String>, DbErr> {
    let limit = i64::try_from(keys).unwrap_or(i64::MAX);
    let holes = Holes::default().with("after", after.unwrap_or_default()).with("limit", limit);
    let rows = store.db.query_all_raw(store.statement(store.dialect.walk_keys, &holes)).await?;
    rows.iter().map(|row| row.try_get("", "k")).collect()
}

/// Those heads that this relay reads, in the order of the keys.
async fn heads(
    db: &impl ConnectionTrait,
    store: &SeaOrmStore,
    claim: &ClaimRequest<'_>,
    keys: &[String],
) -> Result<Vec<Head>, DbErr> {
    let holes = keys_holes(store, claim.now, keys.iter(), claim.proceed);
    let rows = db.query_all_raw(store.statement(store.dialect.heads, &holes)).await?;
    readable(claim, &rows)
}

async fn replays(
    db: &impl ConnectionTrait,
    store: &SeaOrmStore,
    claim: &ClaimRequest<'_>,
) -> Result<Vec<Head>, DbErr> {
    let holes = store.dialect.at(claim.now);
    let rows = db.query_all_raw(store.statement(store.dialect.live_replays, &holes)).await?;
    readable(claim, &rows)
}

fn readable(claim: &ClaimRequest<'_>, rows: &[QueryResult]) -> Result<Vec<Head>, DbErr> {
    let head = |row: &QueryResult| {
        Ok(is_routed(claim, row)?.then_some(Head {
            key: row.try_get("", "k")?,
            id: row.try_get("", "id")?,
            lane: row.try_get::<i16>("", "lane")?.into(),
            is_ready: row.try_get("", "ready")?,
            is_expired: row.try_get("", "expired")?,
        }))
    };
    rows.iter().filter_map(|row| head(row).transpose()).collect()
}

fn is_routed(claim: &ClaimRequest<'_>, row: &QueryResult) -> Result<bool, DbErr> {
    let (name, version) =
        (row.try_get::<String>("", "event_type")?, row.try_get::<i32>("", "event_version")?);
    Ok(claim.routes.iter().any(|route| route.event_type == name && i32::from(route.event_version) == version))
}

/// What is asked of some keys: nothing but the time, and whose dead letters do not block.
pub(super) fn keys_holes<'a>(
    store: &SeaOrmStore,
    now: Option<DateTime<Utc>>,
    keys: impl Iterator<Item = &'a String>,
    proceed: &[&str],
) -> Holes {
    let keys: Vec<_> = keys.enumerate().map(|(n, key)| json!({ "n": n, "k": key })).collect();
    store.dialect.at(now).with("keys", json!(keys).to_string()).with("proceed", json!(proceed).to_string())
}

async fn take(store: &SeaOrmStore, claim: &ClaimRequest<'_>, plan: Plan) -> Result<Claimed, StoreError> {
    let tx = store.begin_looking().await.map_err(failed)?;
    let ids = first_rows(store, &tx, claim, &plan).await.map_err(failed)?;
    let mut claimed = Claimed::default();
    if !ids.is_empty() {
        let holes = store.dialect.at(claim.now).with("ids", store.dialect.ids(ids.into_iter()));
        let rows =
            tx.query_all_raw(store.statement(store.dialect.lock_runs, &holes)).await.map_err(failed)?;
        claimed = unbroken(claim, &rows, &plan)?;
        let ids =
            claimed.rows.iter().map(|row| row.id.0).chain(claimed.unreadable.iter().map(|row| row.id.0));
        let ids: Vec<_> = ids.collect();
        if !ids.is_empty() {
            let holes = store.lease_holes(claim).with("ids", store.dialect.ids(ids.into_iter()));
            store.execute(&tx, store.dialect.claim_ids, &holes).await.map_err(failed)?;
        }
    }
    tx.commit().await.map_err(failed)?;
    Ok(claimed)
}

/// Locks the lanes and reads the first rows of their keys.
async fn first_rows(
    store: &SeaOrmStore,
    tx: &DatabaseTransaction,
    claim: &ClaimRequest<'_>,
    plan: &Plan,
) -> Result<Vec<i64>, DbErr> {
    let mut ids = plan.replays.clone();
    let lanes: BTreeSet<_> = plan.keys.iter().map(|(_, lane)| *lane).collect();
    if lanes.is_empty() {
        return Ok(ids);
    }
    let lock = Holes::default().with("ids", store.dialect.ids(lanes.into_iter()));
    let locked = tx.query_all_raw(store.statement(store.dialect.lock_lanes, &lock)).await?;
    let locked = locked.iter().map(|row| row.try_get::<i16>("", "lane").map(i64::from));
    let locked = locked.collect::<Result<BTreeSet<_>, _>>()?;
    let keys = plan.keys.iter().filter(|(_, lane)| locked.contains(lane)).map(|(key, _)| key);
    let each = i64::try_from(plan.rows_per_key(claim)).unwrap_or(i64::MAX);
    let holes = keys_holes(store, claim.now, keys, claim.proceed).with("each", each);
    for row in tx.query_all_raw(store.statement(store.dialect.runs, &holes)).await? {
        ids.push(row.try_get("", "id")?);
    }
    Ok(ids)
}

impl Plan {
    fn rows_per_key(&self, claim: &ClaimRequest<'_>) -> usize {
        let room = claim.limit.saturating_sub(u32::try_from(self.replays.len()).unwrap_or(u32::MAX));
        rows_per_key(room, self.keys.len()).min(MAX_RUN)
    }
}

/// What is to be claimed of rows that nobody else can change now, in the order of their ids.
fn unbroken(claim: &ClaimRequest<'_>, rows: &[QueryResult], plan: &Plan) -> Result<Claimed, StoreError> {
    let mut by_key: BTreeMap<String, Vec<(&QueryResult, Standing)>> = BTreeMap::new();
    let mut claimed = Claimed::default();
    for row in rows {
        let standing = standing(claim, row)?;
        if row.try_get::<Option<i64>>("", "replay_of").map_err(failed)?.is_none() {
            by_key.entry(row.try_get("", "ordering_key").map_err(failed)?).or_default().push((row, standing));
        } else if standing == Standing::Ready {
            add_claimed(&mut claimed, row, claimed_row(row), 1)?;
        }
    }
    for (key, _) in &plan.keys {
        let rows = by_key.remove(key).unwrap_or_default();
        let standings: Vec<_> = rows.iter().map(|(_, standing)| *standing).collect();
        let taken = claimed.rows.len() + claimed.unreadable.len();
        let room = (claim.limit as usize).saturating_sub(taken);
        for place in prefix(&standings, plan.rows_per_key(claim).min(room)) {
            let row = rows[place].0;
            // Nothing may overtake a row that cannot be read.
            if !add_claimed(&mut claimed, row, claimed_row(row), 1)? {
                break;
            }
        }
    }
    claimed.rows.sort_by_key(|row| row.id);
    Ok(claimed)
}

fn standing(claim: &ClaimRequest<'_>, row: &QueryResult) -> Result<Standing, StoreError> {
    let flag = |column| row.try_get::<bool>("", column).map_err(failed);
    let status = row.try_get::<String>("", "status").map_err(failed)?;
    let proceeds = || {
        let event = row.try_get::<String>("", "event_type").map_err(failed)?;
        Ok::<_, StoreError>(claim.proceed.contains(&&*event))
    };
    Ok(if flag("ready")? && is_routed(claim, row).map_err(failed)? {
        Standing::Ready
    } else if status == Status::Dispatched.as_str()
        || (status == Status::Dead.as_str() && (flag("resolved")? || proceeds()?))
    {
        Standing::Finished
    } else {
        Standing::Blocking
    })
}

/// The row of one of these keys that may be taken over: its first, or a replay, whose lease has expired.
pub(super) async fn expired_of_keys(
    db: &impl ConnectionTrait,
    store: &SeaOrmStore,
    claim: &ClaimRequest<'_>,
    keys: &[String],
    held: &[i64],
) -> Result<Option<i64>, DbErr> {
    if keys.is_empty() {
        return Ok(None);
    }
    let heads = heads(db, store, claim, keys).await?;
    let replays = replays(db, store, claim).await?;
    for key in keys {
        let of_key = |head: &&Head| head.is_expired && head.key == *key && !held.contains(&head.id);
        if let Some(head) = replays.iter().find(of_key).or(heads.iter().find(of_key)) {
            return Ok(Some(head.id));
        }
    }
    Ok(None)
}

fn failed(error: DbErr) -> StoreError {
    store_error("claim ordered rows", error)
}

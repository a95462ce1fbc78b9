//! Claims of ordered rows, in memory.

use super::{MemoryStore, Tables, claim, is_expired};
use crate::{
    decide::order::{Standing, prefix, rows_per_key},
    row::{OutboxRow, RowId, Status},
    store::{BlockedKey, Cause, ClaimRequest, Claimed, OrderedClaim, OrderedRequest},
};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

impl MemoryStore {
    pub(super) fn claim_in_order(&self, request: &OrderedRequest<'_>) -> OrderedClaim {
        let now = self.at(request.claim.now);
        let mut tables = self.lock();
        let limit = request.claim.limit as usize;
        let mut found = OrderedClaim { next: request.after.map(str::to_owned), ..OrderedClaim::default() };
        let mut ids = tables.ready_replays(&request.claim, now, &mut found.expired);
        ids.truncate(limit);
        let room = limit - ids.len();
        let keys = tables.ready_keys(request, now, room, &mut found);
        let each = rows_per_key(u32::try_from(room).unwrap_or(u32::MAX), keys.len());
        let rows = keys.iter().flat_map(|key| tables.run(request, key, now, each)).take(room);
        ids.extend(rows);
        ids.sort_unstable();
        let claim = |id| Some(claim(tables.rows.get_mut(&id)?, &request.claim, now, false));
        found.claimed = Claimed { rows: ids.into_iter().filter_map(claim).collect(), unreadable: Vec::new() };
        found
    }
}

impl Tables {
    /// Replays of ordered dead letters; they wait for nothing.
    fn ready_replays(
        &self,
        request: &ClaimRequest<'_>,
        now: DateTime<Utc>,
        expired: &mut Vec<String>,
    ) -> Vec<RowId> {
        let replays = self.rows.values().filter(|row| row.replay_of.is_some());
        let replays = replays.filter(|row| row.envelope.ordering_key.is_some() && is_routed(request, row));
        let overdue = replays.clone().filter(|row| is_expired(row, now));
        expired.extend(overdue.filter_map(|row| row.envelope.ordering_key.clone()));
        replays.filter(|row| is_due(row, now)).map(|row| row.id).collect()
    }

    /// Keys whose first live row is ready, up to `room` of them.
    fn ready_keys(
        &self,
        request: &OrderedRequest<'_>,
        now: DateTime<Utc>,
        room: usize,
        found: &mut OrderedClaim,
    ) -> Vec<String> {
        let mut keys = Vec::new();
        if room == 0 {
            return keys;
        }
        found.next = None;
        let live = self.rows.values().filter(|row| row.finished_at.is_none() && row.replay_of.is_none());
        let all: BTreeSet<_> = live.filter_map(|row| row.envelope.ordering_key.as_deref()).collect();
        for key in all.into_iter().filter(|key| request.after.is_none_or(|after| *key > after)) {
            let Some(head) = self.of_key(key).next().filter(|_| !self.is_blocked(request.claim.proceed, key))
            else {
                continue;
            };
            if is_expired(head, now) && is_routed(&request.claim, head) {
                found.expired.push(key.to_owned());
            }
            if standing(request, head, now) == Standing::Ready {
                keys.push(key.to_owned());
                if keys.len() == room {
                    found.next = Some(key.to_owned());
                    break;
                }
            }
        }
        keys
    }

    /// The live rows of a key in order, without replays.
    fn of_key<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a OutboxRow> {
        let is_of_key = move |row: &&OutboxRow| {
            row.finished_at.is_none()
                && row.replay_of.is_none()
                && row.envelope.ordering_key.as_deref() == Some(key)
        };
        self.rows.values().filter(is_of_key)
    }

    /// Whether a dead letter holds up the key.
    fn is_blocked(&self, proceed: &[&str], key: &str) -> bool {
        let blocks = |row: &OutboxRow| {
            row.status == Status::Dead
                && row.resolved_at.is_none()
                && row.envelope.ordering_key.as_deref() == Some(key)
                && !proceed.contains(&&*row.envelope.event_type)
        };
        self.rows.values().any(blocks)
    }

    fn run(&self, request: &OrderedRequest<'_>, key: &str, now: DateTime<Utc>, limit: usize) -> Vec<RowId> {
        let rows: Vec<_> = self.of_key(key).collect();
        let standings: Vec<_> = rows.iter().map(|row| standing(request, row, now)).collect();
        prefix(&standings, limit).map(|place| rows[place].id).collect()
    }

    /// Keys that wait, those with dead letters first.
    pub(super) fn blocked_keys(&self, now: DateTime<Utc>, limit: usize) -> Vec<BlockedKey> {
        let control = self.control(now);
        let proceed: Vec<_> = control.proceed().into_iter().collect();
        let is_read = |row: &OutboxRow| control.is_read(&row.envelope.logical_name()) != Some(false);
        let first_by_key = |of: &dyn Fn(&OutboxRow) -> bool| {
            let mut rows: Vec<_> =
                self.rows.values().filter(|row| row.replay_of.is_none() && of(row)).collect();
            rows.retain(|row| row.envelope.ordering_key.is_some());
            rows.sort_by_key(|row| (row.envelope.ordering_key.clone(), row.id));
            rows
        };
        let blocks = |row: &OutboxRow| {
            row.status == Status::Dead
                && row.resolved_at.is_none()
                && !proceed.contains(&&*row.envelope.event_type)
        };
        let mut dead = first_by_key(&blocks);
        dead.dedup_by(|next, first| next.envelope.ordering_key == first.envelope.ordering_key);
        let dead = dead.into_iter().map(|row| (row, Cause::Dead, row.finished_at.unwrap_or(row.created_at)));
        let mut heads = first_by_key(&|row| row.finished_at.is_none());
        heads.dedup_by(|next, first| next.envelope.ordering_key == first.envelope.ordering_key);
        let waiting = heads.into_iter().filter_map(|row| {
            let key = row.envelope.ordering_key.as_deref()?;
            let cause = match row {
                _ if self.is_blocked(&proceed, key) => return None,
                row if !is_read(row) => Cause::Unroutable,
                row if row.lease.is_none() && row.available_at > now => {
                    Cause::Backoff { until: row.available_at }
                }
                _ => return None,
            };
            Some((row, cause, row.created_at))
        });
        let blocked = dead.chain(waiting).take(limit);
        blocked.filter_map(|(row, cause, since)| self.blocked_key(row, cause, since)).collect()
    }

    fn blocked_key(&self, row: &OutboxRow, cause: Cause, since: DateTime<Utc>) -> Option<BlockedKey> {
        let key = row.envelope.ordering_key.clone()?;
        let followers = self.of_key(&key).filter(|follower| follower.id > row.id).count() as u64;
        let logical_name = row.envelope.logical_name();
        Some(BlockedKey { key, head: row.id, logical_name, cause, since, followers })
    }

    /// The row of a key that may be taken over: its first, or a replay, whose lease has expired.
    pub(super) fn expired_of_key(
        &self,
        request: &ClaimRequest<'_>,
        key: &str,
        now: DateTime<Utc>,
    ) -> Option<RowId> {
        let is_of_key = |row: &&OutboxRow| row.envelope.ordering_key.as_deref() == Some(key);
        let replays = self.rows.values().filter(|row| row.replay_of.is_some()).filter(is_of_key);
        let head = self.of_key(key).next().filter(|_| !self.is_blocked(request.proceed, key));
        let mut candidates =
            replays.chain(head).filter(|row| is_expired(row, now) && is_routed(request, row));
        candidates.next().map(|row| row.id)
    }
}

fn standing(request: &OrderedRequest<'_>, row: &OutboxRow, now: DateTime<Utc>) -> Standing {
    if is_due(row, now) && is_routed(&request.claim, row) { Standing::Ready } else { Standing::Blocking }
}

fn is_due(row: &OutboxRow, now: DateTime<Utc>) -> bool {
    row.status == Status::Pending && row.available_at <= now
}

pub(super) fn is_routed(request: &ClaimRequest<'_>, row: &OutboxRow) -> bool {
    let (name, version) = (&*row.envelope.event_type, row.envelope.event_version);
    request.routes.iter().any(|route| route.event_type == name && route.event_version == version)
}

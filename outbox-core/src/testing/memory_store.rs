//! The model that the SQL stores are compared with.

use crate::{
    decide::{AttemptOutcome, Expiry, FailedAttempt, Transition, decide_expired},
    envelope::{Envelope, MessageId},
    row::{ClaimedRow, ErrorClass, Lease, OutboxRow, RowId, Status},
    store::{ClaimRequest, Claimed, Mark, MarkReport, OutboxStore, Purge, StoreError, TakeOver, TakenOver},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A failed attempt in the history of a row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The row.
    pub id: RowId,
    /// Which attempt.
    pub attempt: u32,
    /// The relay that made it.
    pub relay: String,
    /// What failed.
    pub failed: FailedAttempt,
}

impl HistoryEntry {
    /// A failed attempt.
    pub fn new(id: RowId, attempt: u32, relay: String, failed: FailedAttempt) -> Self {
        Self { id, attempt, relay, failed }
    }
}

/// An outbox in memory. Clones share the rows.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
}

#[derive(Debug, Default)]
struct Tables {
    rows: BTreeMap<RowId, OutboxRow>,
    history: Vec<HistoryEntry>,
    last_id: i64,
}

impl MemoryStore {
    /// Stores envelopes as a committed transaction would.
    ///
    /// # Errors
    ///
    /// As a save: an envelope that could not be stored, with nothing stored.
    pub fn append(&self, envelopes: &[Envelope]) -> Result<Vec<RowId>, crate::EventError> {
        envelopes.iter().try_for_each(Envelope::check)?;
        let mut tables = self.lock();
        let insert = |envelope: &Envelope| {
            tables.last_id += 1;
            let id = RowId(tables.last_id);
            // A database stamps rows with a clock that is not ahead of its own `now`.
            tables.rows.insert(id, OutboxRow::pending(id, envelope.clone(), Utc::now()));
            id
        };
        Ok(envelopes.iter().map(insert).collect())
    }

    /// All rows, by id.
    pub fn rows(&self) -> Vec<OutboxRow> {
        self.lock().rows.values().cloned().collect()
    }

    /// The failed attempts, in the order in which they were written.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.lock().history.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutboxStore for MemoryStore {
    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
        let now = request.now.unwrap_or_else(Utc::now);
        let mut tables = self.lock();
        let due = tables.due(request, now, |row| row.status == Status::Pending);
        let due = due.into_iter().take(request.limit as usize);
        let claim = |id| tables.rows.get_mut(&id).map(|row| claim(row, request, now, false));
        Ok(Claimed { rows: due.filter_map(claim).collect(), unreadable: Vec::new() })
    }

    async fn take_over(&self, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
        let now = request.claim.now.unwrap_or_else(Utc::now);
        let mut tables = self.lock();
        let mut taken = TakenOver::default();
        for id in tables.expired(&request.claim, now) {
            let Some(row) = tables.rows.get_mut(&id) else {
                continue;
            };
            let Some(lease) = row.lease.clone() else { continue };
            let expired = HistoryEntry {
                id,
                attempt: row.attempts,
                relay: lease.claimed_by,
                failed: FailedAttempt {
                    handler: None,
                    class: ErrorClass::LeaseExpired,
                    error: crate::decide::LEASE_EXPIRED.to_owned(),
                },
            };
            match decide_expired(row.attempts, lease.isolated, request.max_attempts) {
                Expiry::RunAlone => taken.row = Some(claim(row, &request.claim, now, true)),
                Expiry::Dead => {
                    finish(row, Status::Dead, now);
                    row.last_error = Some((expired.failed.class, expired.failed.error.clone()));
                    taken.buried.push(id);
                }
            }
            tables.history.push(expired);
            if taken.row.is_some() {
                break;
            }
        }
        Ok(taken)
    }

    async fn has_expired(&self, request: &TakeOver<'_>) -> Result<bool, StoreError> {
        let now = request.claim.now.unwrap_or_else(Utc::now);
        Ok(!self.lock().expired(&request.claim, now).is_empty())
    }

    async fn mark(&self, marks: &[Mark], now: Option<DateTime<Utc>>) -> Result<MarkReport, StoreError> {
        let now = now.unwrap_or_else(Utc::now);
        let mut tables = self.lock();
        let mut report = MarkReport::default();
        for mark in marks {
            let tables = &mut *tables;
            let owned = tables.rows.get_mut(&mark.id);
            match owned.filter(|row| row.lease.as_ref().is_some_and(|lease| lease.token == mark.token)) {
                Some(row) => {
                    tables.history.extend(apply(row, &mark.transition, now));
                    report.marked += 1;
                }
                None => report.lost += 1,
            }
        }
        Ok(report)
    }

    async fn purge(&self, purge: &Purge) -> Result<u64, StoreError> {
        let before = purge.now.unwrap_or_else(Utc::now) - delta(purge.older_than);
        let mut tables = self.lock();
        let proven = |row: &&OutboxRow| {
            row.status == Status::Dispatched && row.finished_at.is_some_and(|finished| finished < before)
        };
        let old: Vec<_> =
            tables.rows.values().filter(proven).map(|row| row.id).take(purge.limit as usize).collect();
        tables.rows.retain(|id, _| !old.contains(id));
        Ok(old.len() as u64)
    }

    async fn find(&self, id: MessageId) -> Result<Option<OutboxRow>, StoreError> {
        Ok(self.lock().rows.values().find(|row| row.envelope.message_id == id).cloned())
    }
}

impl Tables {
    /// Rows with an expired lease, up to the first row that waits for a claim: a database would have to look through
    /// the whole backlog for those behind it, and they come to the front by themselves.
    fn expired(&self, request: &ClaimRequest<'_>, now: DateTime<Utc>) -> Vec<RowId> {
        let waiting = self.due(request, now, |row| row.status == Status::Pending).first().copied();
        let front = waiting.and_then(|id| self.rows.get(&id)).map(|row| row.available_at);
        let is_in_front = |row: &OutboxRow| front.is_none_or(|front| row.available_at <= front);
        self.due(request, now, |row| is_expired(row, now) && is_in_front(row))
    }

    /// Rows that the request may claim and that `state` holds of, in the order in which they became due.
    fn due(
        &self,
        request: &ClaimRequest<'_>,
        now: DateTime<Utc>,
        state: impl Fn(&OutboxRow) -> bool,
    ) -> Vec<RowId> {
        let routed = |row: &OutboxRow| {
            let (name, version) = (&*row.envelope.event_type, row.envelope.event_version);
            request.routes.iter().any(|route| route.event_type == name && route.event_version == version)
        };
        let claimable = |row: &&OutboxRow| {
            row.finished_at.is_none()
                && row.envelope.ordering_key.is_none()
                && row.available_at <= now
                && routed(row)
                && state(row)
        };
        let mut due: Vec<_> =
            self.rows.values().filter(claimable).map(|row| (row.available_at, row.id)).collect();
        due.sort_unstable();
        due.into_iter().map(|(_, id)| id).collect()
    }
}

fn is_expired(row: &OutboxRow, now: DateTime<Utc>) -> bool {
    row.lease.as_ref().is_some_and(|lease| lease.expires_at <= now)
}

fn claim(row: &mut OutboxRow, request: &ClaimRequest<'_>, now: DateTime<Utc>, isolated: bool) -> ClaimedRow {
    row.status = Status::Claimed;
    row.attempts += 1;
    row.claims += 1;
    row.lease = Some(Lease {
        token: request.token,
        claimed_by: request.claimed_by.to_owned(),
        expires_at: now + delta(request.lease),
        isolated,
    });
    ClaimedRow {
        id: row.id,
        envelope: row.envelope.clone(),
        attempts: row.attempts,
        claims: row.claims,
        progress: row.progress.clone(),
    }
}

/// Does what was decided; what failed goes into the history.
fn apply(row: &mut OutboxRow, transition: &Transition, now: DateTime<Utc>) -> Vec<HistoryEntry> {
    let relay = row.lease.take().map(|lease| lease.claimed_by).unwrap_or_default();
    let failed = match transition {
        Transition::Dispatched => {
            finish(row, Status::Dispatched, now);
            row.last_error = None;
            &[][..]
        }
        Transition::Release => {
            row.status = Status::Pending;
            row.attempts = row.attempts.saturating_sub(1);
            &[]
        }
        Transition::Retry { delay, outcome } => {
            row.status = Status::Pending;
            row.available_at = now + delta(*delay);
            keep(row, outcome)
        }
        Transition::Dead(outcome) => {
            finish(row, Status::Dead, now);
            keep(row, outcome)
        }
    };
    let (id, attempt) = (row.id, row.attempts);
    failed
        .iter()
        .map(|failed| HistoryEntry { id, attempt, relay: relay.clone(), failed: failed.clone() })
        .collect()
}

fn keep<'a>(row: &mut OutboxRow, outcome: &'a AttemptOutcome) -> &'a [FailedAttempt] {
    if !outcome.progress.is_empty() {
        row.progress.clone_from(&outcome.progress);
    }
    row.last_error = outcome.last_error.clone().or(row.last_error.take());
    &outcome.failed
}

fn finish(row: &mut OutboxRow, status: Status, now: DateTime<Utc>) {
    row.status = status;
    row.finished_at = Some(now);
    row.lease = None;
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

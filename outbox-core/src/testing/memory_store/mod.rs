//! The model that the SQL stores are compared with.

mod list;
mod operate;
mod ordered;
mod signals;

use crate::{
    decide::{AttemptOutcome, Expiry, FailedAttempt, Transition, decide_expired},
    envelope::{Envelope, MessageId},
    row::{ClaimedRow, DeadLetter, ErrorClass, Lease, OutboxRow, RowId, Status},
    store::{
        Announcement, ClaimRequest, Claimed, Control, Finished, LiveRelay, Mark, MarkReport, OrderedClaim,
        OrderedRequest, OutboxStore, Pause, PauseEntry, Purge, Purged, Renewal, Renewed, StoreError,
        TakeOver, TakenOver,
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

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

/// What is written of an attempt whose relay vanished.
fn expired() -> FailedAttempt {
    let error = crate::decide::LEASE_EXPIRED.to_owned();
    FailedAttempt { handler: None, class: ErrorClass::LeaseExpired, error }
}

impl HistoryEntry {
    /// A failed attempt.
    pub fn new(id: RowId, attempt: u32, relay: String, failed: FailedAttempt) -> Self {
        Self { id, attempt, relay, failed }
    }
}

/// An outbox in memory. Clones share the rows.
///
/// Its clock goes with tokio's: when a test pauses that one, this one stands still as well.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
    started: (DateTime<Utc>, Instant),
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { tables: Arc::default(), started: (Utc::now(), Instant::now()) }
    }
}

#[derive(Debug, Default)]
struct Tables {
    rows: BTreeMap<RowId, OutboxRow>,
    history: Vec<HistoryEntry>,
    /// When each entry of the history was written.
    failed_at: Vec<DateTime<Utc>>,
    pauses: BTreeMap<Pause, PauseEntry>,
    relays: BTreeMap<String, (LiveRelay, DateTime<Utc>)>,
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
        let now = self.now();
        let mut tables = self.lock();
        let insert = |envelope: &Envelope| {
            tables.last_id += 1;
            let id = RowId(tables.last_id);
            // A database stamps rows with a clock that is not ahead of its own `now`.
            tables.rows.insert(id, OutboxRow::pending(id, envelope.clone(), now));
            id
        };
        Ok(envelopes.iter().map(insert).collect())
    }

    fn now(&self) -> DateTime<Utc> {
        self.started.0 + self.started.1.elapsed()
    }

    /// The time of a request, unless it is pinned.
    fn at(&self, pinned: Option<DateTime<Utc>>) -> DateTime<Utc> {
        pinned.unwrap_or_else(|| self.now())
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
        let now = self.at(request.now);
        let mut tables = self.lock();
        let due = tables.due_by_event(request, now).into_iter().take(request.limit as usize);
        let claim = |id| {
            let row = tables.rows.get_mut(&id)?;
            Some((row.available_at, claim(row, request, now, false)))
        };
        let mut rows: Vec<_> = due.filter_map(claim).collect();
        rows.sort_by_key(|(due_at, row)| (*due_at, row.id));
        Ok(Claimed { rows: rows.into_iter().map(|(_, row)| row).collect(), unreadable: Vec::new() })
    }

    async fn claim_ordered(&self, request: &OrderedRequest<'_>) -> Result<OrderedClaim, StoreError> {
        Ok(self.claim_in_order(request))
    }

    async fn take_over(&self, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
        let now = self.at(request.claim.now);
        let mut tables = self.lock();
        let mut taken = TakenOver::default();
        while taken.row.is_none() {
            let of_keys =
                || request.keys.iter().find_map(|key| tables.expired_of_key(&request.claim, key, now));
            let next = tables.expired(&request.claim, now).first().copied().or_else(of_keys);
            let Some(row) = next.and_then(|id| tables.rows.get_mut(&id)) else { break };
            let Some(lease) = row.lease.clone() else { break };
            let entry = HistoryEntry {
                id: row.id,
                attempt: row.attempts,
                relay: lease.claimed_by,
                failed: expired(),
            };
            match decide_expired(row.attempts, lease.isolated, request.max_attempts) {
                Expiry::RunAlone => taken.row = Some(claim(row, &request.claim, now, request.alone)),
                Expiry::Dead => {
                    finish(row, Status::Dead, now);
                    row.last_error = Some((entry.failed.class, entry.failed.error.clone()));
                    taken.buried.push(DeadLetter {
                        id: row.id,
                        message: Some(Box::new(row.envelope.clone())),
                        attempts: row.attempts,
                        class: entry.failed.class,
                        error: entry.failed.error.clone(),
                    });
                }
            }
            tables.record([entry], now);
        }
        Ok(taken)
    }

    async fn has_expired(&self, request: &TakeOver<'_>) -> Result<bool, StoreError> {
        let now = self.at(request.claim.now);
        let tables = self.lock();
        let of_key = |key: &String| tables.expired_of_key(&request.claim, key, now).is_some();
        Ok(!tables.expired(&request.claim, now).is_empty() || request.keys.iter().any(of_key))
    }

    async fn mark(&self, marks: &[Mark], now: Option<DateTime<Utc>>) -> Result<MarkReport, StoreError> {
        let now = self.at(now);
        let mut tables = self.lock();
        let mut report = MarkReport::default();
        for mark in marks {
            let tables = &mut *tables;
            let owned = tables.rows.get_mut(&mark.id);
            match owned.filter(|row| row.lease.as_ref().is_some_and(|lease| lease.token == mark.token)) {
                Some(row) => {
                    let failed = apply(row, &mark.transition, now);
                    if matches!(mark.transition, Transition::Dispatched | Transition::Deleted) {
                        tables.resolve(mark.replay_of, now);
                    }
                    if mark.transition == Transition::Deleted {
                        tables.rows.remove(&mark.id);
                    }
                    tables.record(failed, now);
                    report.marked += 1;
                }
                None => report.lost += 1,
            }
        }
        Ok(report)
    }

    async fn renew(&self, renewal: &Renewal<'_>) -> Result<Renewed, StoreError> {
        let now = self.at(renewal.now);
        let mut tables = self.lock();
        let mut lost = Vec::new();
        for (id, token) in renewal.rows {
            let lease = tables.rows.get_mut(id).and_then(|row| row.lease.as_mut());
            match lease.filter(|lease| lease.token == *token) {
                Some(lease) => lease.expires_at = now + delta(renewal.lease),
                None => lost.push((*id, *token)),
            }
        }
        Ok(Renewed { lost, passed_over: Vec::new() })
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        let age = delta(purge.older_than);
        let Some(before) = self.at(purge.now).checked_sub_signed(age) else { return Ok(Purged::default()) };
        let mut tables = self.lock();
        let limit = purge.limit as usize;
        let rows = if purge.finished == Finished::History {
            tables.purge_history(before, limit)
        } else {
            tables.purge_rows(purge.finished, before, limit)
        };
        Ok(Purged { rows: rows as u64, busy: false })
    }

    async fn announce(&self, announcement: &Announcement<'_>) -> Result<(), StoreError> {
        let until = self.at(announcement.now) + delta(announcement.lasts);
        let relay = LiveRelay {
            name: announcement.relay.to_owned(),
            handlers: announcement.handlers.clone(),
            proceed: announcement.proceed.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.lock().relays.insert(relay.name.clone(), (relay, until));
        Ok(())
    }

    async fn withdraw(&self, relay: &str) -> Result<(), StoreError> {
        self.lock().relays.remove(relay);
        Ok(())
    }

    async fn control(&self, now: Option<DateTime<Utc>>) -> Result<Control, StoreError> {
        let now = self.at(now);
        Ok(self.lock().control(now))
    }

    async fn find(&self, id: MessageId) -> Result<Option<OutboxRow>, StoreError> {
        Ok(self.lock().rows.values().find(|row| row.envelope.message_id == id).cloned())
    }
}

impl Tables {
    fn control(&self, now: DateTime<Utc>) -> Control {
        let live = self.relays.values().filter(|(_, until)| *until > now);
        Control {
            pauses: self.pauses.values().cloned().collect(),
            relays: live.map(|(relay, _)| relay.clone()).collect(),
        }
    }

    fn record(&mut self, failed: impl IntoIterator<Item = HistoryEntry>, now: DateTime<Utc>) {
        self.history.extend(failed);
        self.failed_at.resize(self.history.len(), now);
    }

    fn purge_rows(&mut self, finished: Finished, before: DateTime<Utc>, limit: usize) -> usize {
        let proven = |row: &&OutboxRow| match finished {
            Finished::Dispatched => {
                row.status == Status::Dispatched && row.finished_at.is_some_and(|at| at < before)
            }
            Finished::Resolved => row.status == Status::Dead && row.resolved_at.is_some_and(|at| at < before),
            Finished::History => false,
        };
        let old: Vec<_> = self.rows.values().filter(proven).map(|row| row.id).take(limit).collect();
        self.rows.retain(|id, _| !old.contains(id));
        old.len()
    }

    /// The history of a row goes only once the row is finished for good.
    fn purge_history(&mut self, before: DateTime<Utc>, limit: usize) -> usize {
        let owed = |row: &OutboxRow| {
            row.finished_at.is_none() || (row.status == Status::Dead && row.resolved_at.is_none())
        };
        let (mut kept, mut purged) = (Vec::new(), 0);
        for (entry, at) in std::mem::take(&mut self.history).into_iter().zip(self.failed_at.drain(..)) {
            if at < before && purged < limit && !self.rows.get(&entry.id).is_some_and(owed) {
                purged += 1;
            } else {
                kept.push((entry, at));
            }
        }
        (self.history, self.failed_at) = kept.into_iter().unzip();
        purged
    }

    /// Rows with an expired lease, up to the first row of the same name and version that waits for a claim: a database
    /// would have to look through the whole backlog for those behind it, and they come to the front by themselves.
    fn expired(&self, request: &ClaimRequest<'_>, now: DateTime<Utc>) -> Vec<RowId> {
        let is_in_front = |row: &OutboxRow| {
            let same = |other: &&OutboxRow| {
                other.envelope.event_type == row.envelope.event_type
                    && other.envelope.event_version == row.envelope.event_version
            };
            let waiting = self.due(request, now, |row| row.status == Status::Pending).into_iter();
            let front = waiting.filter_map(|id| self.rows.get(&id)).find(same);
            front.is_none_or(|front| row.available_at <= front.available_at)
        };
        self.due(request, now, |row| is_expired(row, now) && is_in_front(row))
    }

    /// Rows that wait for a claim: all of the event whose first one has waited longest, then those of the next.
    fn due_by_event(&self, request: &ClaimRequest<'_>, now: DateTime<Utc>) -> Vec<RowId> {
        let due = |route| {
            let request = ClaimRequest { routes: std::slice::from_ref(route), ..*request };
            self.due(&request, now, |row| row.status == Status::Pending)
        };
        let mut events: Vec<_> = request.routes.iter().map(due).collect();
        let first =
            |ids: &Vec<RowId>| ids.first().and_then(|id| self.rows.get(id)).map(|row| row.available_at);
        events.retain(|ids| !ids.is_empty());
        events.sort_by_key(first);
        events.concat()
    }

    /// Rows that the request may claim and that `state` holds of, in the order in which they became due.
    fn due(
        &self,
        request: &ClaimRequest<'_>,
        now: DateTime<Utc>,
        state: impl Fn(&OutboxRow) -> bool,
    ) -> Vec<RowId> {
        let claimable = |row: &&OutboxRow| {
            row.finished_at.is_none()
                && row.envelope.ordering_key.is_none()
                && row.available_at <= now
                && ordered::is_routed(request, row)
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
        replay_of: row.replay_of,
    }
}

/// Does what was decided; what failed goes into the history.
fn apply(row: &mut OutboxRow, transition: &Transition, now: DateTime<Utc>) -> Vec<HistoryEntry> {
    let relay = row.lease.take().map(|lease| lease.claimed_by).unwrap_or_default();
    let (id, attempt) = (row.id, row.attempts);
    let failed = match transition {
        Transition::Dispatched | Transition::Deleted => {
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
        Transition::Wait { delay, outcome } => {
            row.status = Status::Pending;
            row.attempts = row.attempts.saturating_sub(1);
            row.available_at = now + delta(*delay);
            keep(row, outcome)
        }
        Transition::Dead(outcome) => {
            finish(row, Status::Dead, now);
            keep(row, outcome)
        }
    };
    failed
        .iter()
        .map(|failed| HistoryEntry { id, attempt, relay: relay.clone(), failed: failed.clone() })
        .collect()
}

fn keep<'a>(row: &mut OutboxRow, outcome: &'a AttemptOutcome) -> &'a [FailedAttempt] {
    for (handler, state) in &outcome.progress {
        row.progress.entry(handler.clone()).or_insert(*state);
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

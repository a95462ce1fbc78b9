//! What is late, and why: one look at the whole outbox.

use super::{BlockedKey, Cause, LiveRelay, PauseEntry};
use crate::row::ErrorClass;
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, time::Duration};

/// The state of an outbox at one moment.
///
/// Whatever is not finished is counted once: in [`EventSignals`] by what it waits for. Finished rows cost nothing and do
/// not appear, but for dead letters that wait for an operator.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Signals {
    /// When (database clock).
    pub at: DateTime<Utc>,
    /// Each event that has rows which are not finished, or dead letters; by name and version.
    pub events: Vec<EventSignals>,
    /// Ordering keys of which nothing is dispatched for now.
    pub blocked: BlockedSignals,
    /// What is paused.
    pub pauses: Vec<PauseEntry>,
    /// The relays that live.
    pub relays: Vec<LiveRelay>,
}

/// The rows of one name and version.
///
/// [`ready`](Self::ready) and the counts after it do not overlap. They are counted up to [`MAX_COUNTED`](Self::MAX_COUNTED)
/// together; beyond it [`is_complete`](Self::is_complete) is false, and they are too low.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventSignals {
    /// Stored name of the event.
    pub event_type: String,
    /// Its version.
    pub event_version: u16,
    /// Whether a live relay reads it. `Some(false)`: its rows are unroutable and wait for a build that does. `None`: no relay
    /// lives, so nobody can tell.
    pub is_read: Option<bool>,
    /// Due, and waiting for a relay.
    pub ready: u64,
    /// Since when the first of them has been due (database clock). Right whatever the number of rows.
    pub ready_since: Option<DateTime<Utc>>,
    /// Due, but behind a row that holds up their ordering key.
    pub blocked: u64,
    /// Failed, and due later.
    pub retrying: u64,
    /// Not failed, and due later.
    pub scheduled: u64,
    /// Owned by a relay.
    pub claimed: u64,
    /// Owned by a relay that let its lease expire; another one takes them over.
    pub expired: u64,
    /// Whether all rows were counted.
    pub is_complete: bool,
    /// When the oldest of the counted rows was stored (database clock).
    pub oldest: Option<DateTime<Utc>>,
    /// Dead letters that wait for an operator, by why; those that are replayed already are not among them. Up to
    /// [`MAX_COUNTED`](Self::MAX_COUNTED) of all events together.
    pub dead: BTreeMap<ErrorClass, u64>,
    /// Since when the oldest of them is dead (database clock).
    pub dead_since: Option<DateTime<Utc>>,
}

/// Ordering keys that wait; see [`blocked_keys`](super::OutboxOperator::blocked_keys) for each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedSignals {
    /// Keys behind a dead letter.
    pub dead: u64,
    /// Keys behind a row in backoff.
    pub backoff: u64,
    /// Keys behind a row that no live relay reads.
    pub unroutable: u64,
    /// Rows that wait behind them.
    pub followers: u64,
    /// Since when the first of them is blocked (database clock).
    pub since: Option<DateTime<Utc>>,
    /// Whether all keys were looked at: at most some thousands are.
    pub is_complete: bool,
}

impl BlockedSignals {
    /// Counts keys, and the followers that each of them knows of.
    pub fn of(keys: &[BlockedKey], is_complete: bool) -> Self {
        let mut blocked = Self { is_complete, ..Self::default() };
        for key in keys {
            match key.cause {
                Cause::Dead => blocked.dead += 1,
                Cause::Backoff { .. } => blocked.backoff += 1,
                Cause::Unroutable => blocked.unroutable += 1,
            }
            blocked.followers += key.followers;
            blocked.since = blocked.since.into_iter().chain([key.since]).min();
        }
        blocked
    }

    /// How many keys are blocked at least.
    pub fn keys(&self) -> u64 {
        self.dead + self.backoff + self.unroutable
    }
}

impl EventSignals {
    /// How many unfinished rows of an event are counted.
    pub const MAX_COUNTED: u32 = 10_000;

    /// Nothing of an event.
    pub fn none(event_type: String, event_version: u16, is_read: Option<bool>) -> Self {
        Self {
            event_type,
            event_version,
            is_read,
            ready: 0,
            ready_since: None,
            blocked: 0,
            retrying: 0,
            scheduled: 0,
            claimed: 0,
            expired: 0,
            is_complete: true,
            oldest: None,
            dead: BTreeMap::new(),
            dead_since: None,
        }
    }

    /// `orders.order-placed.v2`.
    pub fn logical_name(&self) -> String {
        format!("{}.v{}", self.event_type, self.event_version)
    }

    /// Rows that are not finished.
    pub fn unfinished(&self) -> u64 {
        self.ready + self.blocked + self.retrying + self.scheduled + self.claimed + self.expired
    }

    /// Rows that no live relay reads.
    pub fn unroutable(&self) -> u64 {
        if self.is_read == Some(false) { self.unfinished() } else { 0 }
    }

    /// Dead letters of all causes.
    pub fn dead_letters(&self) -> u64 {
        self.dead.values().sum()
    }
}

impl Signals {
    /// How long the first row that is due, and that some relay reads, has waited: the first thing to watch. Zero when there
    /// is none. Rows that are due later, blocked, dead or unroutable are not late by this measure; each has its own.
    pub fn lag(&self) -> Duration {
        let read = self.events.iter().filter(|event| event.is_read != Some(false));
        self.age(read.filter_map(|event| event.ready_since).min())
    }

    /// How long the first due row of an event has waited.
    pub fn lag_of(&self, event: &EventSignals) -> Duration {
        self.age(event.ready_since)
    }

    /// Time since then; zero when there is none.
    pub fn age(&self, since: Option<DateTime<Utc>>) -> Duration {
        since.and_then(|since| (self.at - since).to_std().ok()).unwrap_or_default()
    }

    /// One count of all events together: `signals.total(|event| event.ready)`.
    pub fn total(&self, count: impl Fn(&EventSignals) -> u64) -> u64 {
        self.events.iter().map(count).sum()
    }

    /// Joins what a store has found: an event for each name and version, sorted.
    pub fn new(
        at: DateTime<Utc>,
        mut events: Vec<EventSignals>,
        blocked: BlockedSignals,
        control: super::Control,
    ) -> Self {
        events.sort_by(|a, b| (&a.event_type, a.event_version).cmp(&(&b.event_type, b.event_version)));
        Self { at, events, blocked, pauses: control.pauses, relays: control.relays }
    }
}

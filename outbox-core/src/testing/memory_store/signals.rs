//! One look at the whole outbox, in memory.

use super::{MemoryStore, Tables, is_expired};
use crate::{
    row::{OutboxRow, RowId, Status},
    store::{BlockedSignals, Control, EventSignals, Signals},
};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

impl MemoryStore {
    pub(super) fn signals_at(&self, now: DateTime<Utc>, control: Control) -> Signals {
        let tables = self.lock();
        let keys = tables.blocked_keys(now, usize::MAX);
        let blocked = BlockedSignals::of(&keys, true);
        let keys = keys.into_iter().map(|key| key.key).collect();
        let events = tables.events(&keys, &control, now);
        Signals::new(now, events, blocked, control)
    }
}

impl Tables {
    fn events(&self, blocked: &BTreeSet<String>, control: &Control, now: DateTime<Utc>) -> Vec<EventSignals> {
        let mut events = BTreeMap::new();
        let replayed: BTreeSet<RowId> = self.rows.values().filter_map(|row| row.replay_of).collect();
        for row in self.rows.values() {
            let (name, version) = (row.envelope.event_type.to_string(), row.envelope.event_version);
            let is_dead = row.status == Status::Dead && row.resolved_at.is_none();
            let waits_for_operator = is_dead && !replayed.contains(&row.id);
            if row.finished_at.is_some() && !waits_for_operator {
                continue;
            }
            let none =
                || EventSignals::none(name.clone(), version, control.is_read(&row.envelope.logical_name()));
            let event = events.entry((name.clone(), version)).or_insert_with(none);
            if waits_for_operator {
                let class = row.last_error.as_ref().map(|(class, _)| *class);
                *event.dead.entry(class.unwrap_or(crate::row::ErrorClass::Unreadable)).or_default() += 1;
                event.dead_since = event.dead_since.into_iter().chain(row.finished_at).min();
            } else {
                add(event, row, blocked, now);
            }
        }
        events.into_values().collect()
    }
}

fn add(event: &mut EventSignals, row: &OutboxRow, blocked: &BTreeSet<String>, now: DateTime<Utc>) {
    event.oldest = event.oldest.into_iter().chain([row.created_at]).min();
    let key = row.envelope.ordering_key.as_deref().filter(|_| row.replay_of.is_none());
    let count = match row {
        row if is_expired(row, now) => &mut event.expired,
        row if row.lease.is_some() => &mut event.claimed,
        row if row.available_at > now && row.last_error.is_some() => &mut event.retrying,
        row if row.available_at > now => &mut event.scheduled,
        _ if key.is_some_and(|key| blocked.contains(key)) => &mut event.blocked,
        row => {
            event.ready_since = event.ready_since.into_iter().chain([row.available_at]).min();
            &mut event.ready
        }
    };
    *count += 1;
}

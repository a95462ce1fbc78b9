//! The events of the binary together: every stored name and version is read in one way, and none is left out.

use super::RouterError;
use crate::{event::EventDescriptor, store::Route};
use std::collections::BTreeSet;

type Event = &'static EventDescriptor;

/// Everything that is wrong between events; `events` is sorted by name and version.
pub(super) fn errors(events: &[Event]) -> Vec<RouterError> {
    let mut errors = duplicates(events);
    errors.extend(events.iter().flat_map(|event| ambiguous(event, events)));
    errors.extend(events.iter().filter_map(|event| gap(event, events)));
    errors
}

fn duplicates(events: &[Event]) -> Vec<RouterError> {
    let twins =
        |pair: &&[Event]| pair[0].logical_name == pair[1].logical_name && !pair[0].is_same_type(pair[1]);
    events.windows(2).filter(twins).map(|pair| RouterError::duplicate_event(pair[0], pair[1])).collect()
}

/// For each former name the first version of which another event reads rows, in its own way.
fn ambiguous(event: Event, events: &[Event]) -> Vec<RouterError> {
    let mut errors = Vec::new();
    for alias in event.aliases {
        for other in events.iter().filter(|other| other.event_type != event.event_type) {
            if !other.names().any(|name| name == *alias) {
                continue;
            }
            // Of two that have the same former name, the first by place reports.
            if other.event_type != *alias && other.event_type < event.event_type {
                continue;
            }
            let differs = |version: &u16| match (event.reader(*version), other.reader(*version)) {
                (Some(ours), Some(theirs)) => ours != theirs,
                _ => false,
            };
            let highest = event.event_version.min(other.event_version);
            if let Some(version) = (1..=highest).find(differs) {
                let types = [event.place(), other.place()];
                errors.push(RouterError::AmbiguousAlias { alias, version, types });
            }
        }
    }
    errors
}

/// The declared versions between the oldest that an event reads and its own, as far as it does not read them.
fn gap(event: Event, events: &[Event]) -> Option<RouterError> {
    let oldest = (1..=event.event_version).find(|version| event.reads(*version))?;
    let same = events.iter().filter(|other| event.names().any(|name| name == other.event_type));
    let between = same.filter(|other| (oldest..event.event_version).contains(&other.event_version));
    let missing: Vec<_> = between
        .filter(|other| !event.reads(other.event_version))
        .map(|other| (other.event_version, other.place()))
        .collect();
    (!missing.is_empty()).then(|| RouterError::UpcastGap {
        logical_name: event.logical_name,
        declared: event.place(),
        missing,
    })
}

/// Says which versions of handled events no handler reads: their rows wait for ever, if there are any.
pub(super) fn warn_of_unread(events: &[Event], routes: &BTreeSet<Route>) {
    for event in events {
        let of_event = |route: &&Route| route.event_type == event.event_type;
        let is_read = routes.iter().filter(of_event).any(|route| route.event_version == event.event_version);
        let newer = routes.iter().filter(of_event).any(|route| route.event_version > event.event_version);
        if newer && !is_read {
            tracing::warn!(
                event = event.logical_name,
                file = event.file,
                line = event.line,
                "a newer version of this event is handled, and rows of this one are read by no handler: they stay \
                 pending; name it as `upcast_from` of the newer one, or keep a handler for it"
            );
        }
    }
}

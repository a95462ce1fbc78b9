//! The events of the binary against the lock: what breaks, and what is only new.

use super::{
    canonical::canonical,
    compare::differences,
    difference::{Breaks, Difference},
    errors::CatalogError,
    lock::{Lock, LockedEvent, State},
};
use crate::event::{EventDescriptor, Reader};

type Event = &'static EventDescriptor;

/// What was found, and the lock as it would be with all that is only new.
pub(super) struct Verdict {
    pub(super) errors: Vec<CatalogError>,
    /// What is not in the lock yet, and breaks nothing.
    pub(super) changes: Vec<CatalogError>,
    pub(super) lock: Lock,
}

/// Judges the `own` events; others of the binary may read what the lock holds.
pub(super) fn judge(lock: Lock, own: &[Event], all: &[Event]) -> Verdict {
    let mut verdict = Verdict { errors: Vec::new(), changes: Vec::new(), lock };
    for event in own {
        verdict.event(event);
    }
    let locked = verdict.lock.events.clone();
    for locked in locked.iter().filter(|locked| !locked.retired) {
        if !own.iter().any(|event| is(locked, event)) {
            verdict.gone(locked, all);
        }
    }
    verdict
}

fn is(locked: &LockedEvent, event: &EventDescriptor) -> bool {
    locked.name == event.event_type && locked.version == event.event_version
}

impl State {
    fn of(event: &EventDescriptor) -> Self {
        let schemas = event.schemas();
        Self {
            written: canonical(schemas.written.as_value()),
            readable: canonical(schemas.readable.as_value()),
        }
    }
}

/// The older versions that an event reads.
fn older(event: &EventDescriptor) -> Vec<u16> {
    (1..event.event_version).filter(|version| event.reads(*version)).collect()
}

impl Verdict {
    fn change(&mut self, logical_name: &str, change: &str) {
        self.changes.push(CatalogError::Unrecorded {
            logical_name: logical_name.to_owned(),
            change: change.to_owned(),
        });
    }

    fn event(&mut self, event: Event) {
        let state = State::of(event);
        let unreadable = differences(&state.written, &state.readable, Breaks::Itself);
        if !unreadable.is_empty() {
            self.errors.push(CatalogError::Unreadable {
                logical_name: event.logical_name.to_owned(),
                declared: event.place(),
                differences: unreadable,
            });
            return;
        }
        let Some(index) = self.lock.events.iter().position(|locked| is(locked, event)) else {
            self.change(event.logical_name, "it is new");
            self.lock.events.push(LockedEvent {
                name: event.event_type.to_owned(),
                version: event.event_version,
                draft: event.is_draft,
                retired: false,
                aliases: event.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
                reads: older(event),
                states: vec![state],
            });
            return;
        };
        // Taken out, so that what is found can be noted meanwhile.
        let mut locked = self.lock.events.remove(index);
        if locked.draft {
            self.draft(event, &mut locked, state);
        } else {
            self.released(event, &mut locked, state);
        }
        self.names(event, &mut locked);
        self.lock.events.insert(index, locked);
    }

    fn draft(&mut self, event: Event, locked: &mut LockedEvent, state: State) {
        if !event.is_draft {
            self.change(event.logical_name, "it is no draft any more");
            locked.draft = false;
        } else if locked.states.last() != Some(&state) {
            self.change(event.logical_name, "the draft changed");
        }
        locked.states = vec![state];
    }

    fn released(&mut self, event: Event, locked: &mut LockedEvent, state: State) {
        let (logical_name, declared) = (event.logical_name.to_owned(), event.place());
        if event.is_draft {
            return self.errors.push(CatalogError::DraftAgain { logical_name, declared });
        }
        if locked.states.last() == Some(&state) {
            return;
        }
        let mut found = stored_rows(locked, &state);
        // The build that runs beside this one while it is deployed is the one that was recorded last.
        if let Some(previous) = locked.states.last() {
            found.extend(differences(&state.written, &previous.readable, Breaks::PreviousBuild));
        }
        if !found.is_empty() {
            found.sort();
            return self.errors.push(CatalogError::Breaking { logical_name, declared, differences: found });
        }
        self.change(event.logical_name, "the payload changed, and everything that was written can be read");
        // A state that comes back is the current one again.
        locked.states.retain(|earlier| *earlier != state);
        locked.states.push(state);
    }

    fn names(&mut self, event: Event, locked: &mut LockedEvent) {
        let aliases: Vec<String> = event.aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let reads = older(event);
        if !event.is_draft {
            for alias in locked.aliases.iter().filter(|alias| !aliases.contains(alias)) {
                self.errors.push(CatalogError::AliasRemoved {
                    logical_name: event.logical_name.to_owned(),
                    declared: event.place(),
                    alias: alias.clone(),
                });
            }
            for version in locked.reads.iter().copied().filter(|version| !reads.contains(version)) {
                self.errors.push(CatalogError::VersionUnread {
                    logical_name: event.logical_name.to_owned(),
                    declared: event.place(),
                    version,
                });
            }
        }
        if locked.aliases != aliases {
            self.change(event.logical_name, "its aliases changed");
        }
        if locked.reads != reads {
            self.change(event.logical_name, "the older versions that it reads changed");
        }
        (locked.aliases, locked.reads) = (aliases, reads);
    }

    /// A version whose type is not there: what reads it must still be able to.
    fn gone(&mut self, locked: &LockedEvent, all: &[Event]) {
        let logical_name = locked.logical_name();
        let mut named = all.iter().filter(|event| event.names().any(|name| name == locked.name));
        let Some((event, reader)) = named.find_map(|event| Some((event, event.reader(locked.version)?)))
        else {
            if locked.draft {
                self.change(&logical_name, "the draft is gone");
                self.lock.events.retain(|other| other != locked);
            } else {
                self.errors.push(CatalogError::Gone { logical_name });
            }
            return;
        };
        // What a function makes of the JSON, no schema tells.
        let by_type = match reader {
            Reader::Type(_) => all.iter().find(|other| other.is_reader(reader)),
            Reader::Functions(_) => None,
        };
        let found = by_type.map(|other| stored_rows(locked, &State::of(other))).unwrap_or_default();
        if !found.is_empty() {
            let declared = by_type.unwrap_or(event).place();
            self.errors.push(CatalogError::Breaking { logical_name, declared, differences: found });
        }
    }
}

/// Compatibility is not transitive, so every state that rows may have is asked.
fn stored_rows(locked: &LockedEvent, state: &State) -> Vec<Difference> {
    let states = locked.states.iter();
    let mut found: Vec<_> = states
        .flat_map(|earlier| differences(&earlier.written, &state.readable, Breaks::StoredRows))
        .collect();
    found.sort();
    found.dedup();
    found
}

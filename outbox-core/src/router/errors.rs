//! What can be wrong with a router. All of it is known at start-up, and all of it is said at once.

use crate::{event::EventDescriptor, handler::Source};
use std::fmt;

/// One thing that is wrong with a router.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouterError {
    /// Two handlers under one id.
    DuplicateHandler {
        /// The id.
        id: String,
        /// Both places.
        sources: [Source; 2],
    },
    /// A handler needs a state that was not given.
    MissingState {
        /// The handler.
        id: String,
        /// Its place.
        source: Source,
        /// The Rust type of the state.
        state: &'static str,
    },
    /// Two states of one type.
    DuplicateState {
        /// The Rust type of the state.
        state: &'static str,
        /// Where the second was given.
        source: Source,
    },
    /// A handler that was expected is not registered.
    NotLinked {
        /// The id.
        id: String,
        /// Where it was expected.
        source: Source,
    },
    /// A handler id outside the grammar.
    InvalidId {
        /// The id.
        id: String,
        /// Its place.
        source: Source,
        /// What is wrong with it.
        reason: String,
    },
    /// Two Rust types under one logical name.
    DuplicateEvent {
        /// Name and version.
        logical_name: &'static str,
        /// Both Rust types with their places.
        types: [String; 2],
    },
    /// An event that is ignored has a handler.
    Ignored {
        /// The handler.
        id: String,
        /// Name and version of the event.
        event: String,
        /// Where the handler is, and where the event is ignored.
        sources: [Source; 2],
    },
    /// Rows of one name and version could be read as either of two events, because of a former name.
    AmbiguousAlias {
        /// The former name.
        alias: &'static str,
        /// The version of which both read rows.
        version: u16,
        /// Both Rust types with their places.
        types: [String; 2],
    },
    /// A chain of upcasts leaves out versions that are declared between its ends.
    UpcastGap {
        /// Name and version of the event that reads older versions.
        logical_name: &'static str,
        /// Its Rust type with its place.
        declared: String,
        /// The versions that it does not read, with the types that have them.
        missing: Vec<(u16, String)>,
    },
}

impl RouterError {
    pub(crate) fn duplicate_event(first: &EventDescriptor, second: &EventDescriptor) -> Self {
        Self::DuplicateEvent { logical_name: first.logical_name, types: [first.place(), second.place()] }
    }
}

impl fmt::Display for RouterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateHandler { id, sources: [first, second] } => {
                write!(
                    f,
                    "handler id {id:?} is used twice, at {first} and at {second}; give each handler its own id"
                )
            }
            Self::MissingState { id, source, state } => write!(
                f,
                "handler {id:?} ({source}) needs a state of type {state}, but the router was given none; add .state(...)"
            ),
            Self::DuplicateState { state, source } => {
                write!(
                    f,
                    "state {state} is given a second time at {source}; wrap one of them in a type of its own"
                )
            }
            Self::NotLinked { id, source } => write!(
                f,
                "handler {id:?}, expected at {source}, is not registered; is its crate linked? Refer to it once, e.g. `use that_crate as _;`, and call .discover()"
            ),
            Self::InvalidId { id, source, reason } => write!(f, "handler id {id:?} ({source}) {reason}"),
            Self::DuplicateEvent { logical_name, types: [first, second] } => write!(
                f,
                "event {logical_name} is declared by two types, {first} and {second}; stored rows could be read as either, so rename one"
            ),
            Self::Ignored { id, event, sources: [handler, ignored] } => write!(
                f,
                "event {event} is ignored at {ignored}, but handler {id:?} ({handler}) handles it; remove one of them"
            ),
            Self::AmbiguousAlias { alias, version, types: [first, second] } => write!(
                f,
                "rows stored as {alias}.v{version} could be read as {first} or as {second}; take `alias = {alias:?}` from one of them"
            ),
            Self::UpcastGap { logical_name, declared, missing } => {
                write!(f, "event {logical_name}, declared by {declared}, reads older versions, but not ")?;
                for (i, (version, place)) in missing.iter().enumerate() {
                    write!(f, "{}v{version} of {place}", if i == 0 { "" } else { " and " })?;
                }
                write!(
                    f,
                    "; its handlers would never see those rows, so put them into the chain of `upcast_from`"
                )
            }
        }
    }
}

/// Everything that is wrong with a router.
#[derive(Clone, PartialEq, Eq)]
pub struct RouterErrors(pub(crate) Vec<RouterError>);

impl RouterErrors {
    /// The errors, at least one.
    pub fn errors(&self) -> &[RouterError] {
        &self.0
    }
}

impl fmt::Display for RouterErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the router cannot be built:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  - {error}"))
    }
}

impl std::error::Error for RouterErrors {}

/// As its text: this is what a `main` that returns it prints.
impl fmt::Debug for RouterErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

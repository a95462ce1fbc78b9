//! What operators and relays tell all relays of a table.

use chrono::{DateTime, Utc};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

/// The handler ids of each logical name (`orders.order-placed.v2`). An ignored event has none.
pub type HandlerSets = BTreeMap<String, BTreeSet<String>>;

/// Something that relays leave alone until it is resumed. Producers do not notice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Pause {
    /// Everything: nothing is claimed.
    All,
    /// One event type, in all its versions: its rows are not claimed.
    Event(String),
    /// One handler: it is not called, and rows that only it would handle are not claimed.
    Handler(String),
}

impl Pause {
    /// What is paused: `all`, `event` or `handler`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Event(_) => "event",
            Self::Handler(_) => "handler",
        }
    }

    /// Name of the event type or id of the handler; `*` for all.
    pub fn name(&self) -> &str {
        match self {
            Self::All => "*",
            Self::Event(name) | Self::Handler(name) => name,
        }
    }

    /// The pause that [`kind`](Self::kind) and [`name`](Self::name) describe.
    pub fn from_parts(kind: &str, name: &str) -> Option<Self> {
        match kind {
            "all" => Some(Self::All),
            "event" => Some(Self::Event(name.to_owned())),
            "handler" => Some(Self::Handler(name.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("everything"),
            Self::Event(name) => write!(f, "event {name}"),
            Self::Handler(id) => write!(f, "handler {id}"),
        }
    }
}

/// A pause, and who said so.
#[derive(Clone, Debug, PartialEq)]
pub struct PauseEntry {
    /// What is paused.
    pub pause: Pause,
    /// Who paused it.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// Since when (database clock).
    pub since: DateTime<Utc>,
}

/// A relay says which handlers it has.
#[derive(Clone, Copy, Debug)]
pub struct Announcement<'a> {
    /// Name of the relay.
    pub relay: &'a str,
    /// Its handlers.
    pub handlers: &'a HandlerSets,
    /// Event types whose dead letters do not block their ordering key.
    pub proceed: &'a [&'static str],
    /// After this it is forgotten.
    pub lasts: Duration,
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

/// A relay that announced itself and was not forgotten yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRelay {
    /// Its name.
    pub name: String,
    /// Its handlers.
    pub handlers: HandlerSets,
    /// Event types whose dead letters do not block their ordering key.
    pub proceed: BTreeSet<String>,
}

/// What is paused, and which relays live.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Control {
    /// Everything that is paused.
    pub pauses: Vec<PauseEntry>,
    /// Every relay that lives, by name.
    pub relays: Vec<LiveRelay>,
}

impl Control {
    /// Whether a live relay reads a logical name; `None` when no relay lives.
    pub fn is_read(&self, logical_name: &str) -> Option<bool> {
        let reads = |relay: &LiveRelay| relay.handlers.contains_key(logical_name);
        (!self.relays.is_empty()).then(|| self.relays.iter().any(reads))
    }

    /// Event types whose dead letters do not block their ordering key.
    pub fn proceed(&self) -> BTreeSet<&str> {
        self.relays.iter().flat_map(|relay| &relay.proceed).map(String::as_str).collect()
    }
}

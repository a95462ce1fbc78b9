//! The contracts of the events: what was ever written stays readable.
//!
//! Rows outlive builds. A field that is removed today makes a row of yesterday a dead letter, and a field that is
//! added without a default does the same to every row that is stored. Nothing in Rust notices; a test of one line
//! does, in the crate that declares the events:
//!
//! ```no_run
//! // tests/events.rs
//! #[test]
//! fn events_stay_readable() -> Result<(), outbox_core::catalog::CatalogErrors> {
//!     // The events must be linked in: `use my_crate as _;` is enough.
//!     outbox_core::catalog::check("events.lock.json").map(drop)
//! }
//! # fn main() {}
//! ```
//!
//! `OUTBOX_LOCK=update cargo test` records new events and changes that break nothing; the file is checked in. It keeps
//! every state that the payload of a version ever had, in a canonical form without Rust's names. From then on each
//! change is judged twice:
//!
//! * rows that are stored, in **every** state that was ever recorded, must be readable by this build;
//! * rows that this build writes must be readable by the build that was recorded last, which runs beside this one
//!   while it is deployed.
//!
//! What breaks either is an error that no update writes over. The way out is a new version with `upcast_from`.
//!
//! # Limits
//!
//! The schema is what schemars says of the type, so a `JsonSchema` that is written by hand, a
//! `#[schemars(with = …)]` and a `#[serde(try_from = …)]` that refuses values are taken at their word. What
//! `upcast_json` makes of a payload is not looked at. Whether a field still *means* the same, only a review can tell.

mod canonical;
mod compare;
mod difference;
mod errors;
mod export;
mod inline;
mod lock;
mod verdict;

pub use difference::{Breaks, Difference};
pub use errors::{CatalogError, CatalogErrors};
pub use export::export;

use crate::event::{EventDescriptor, catalog};
use lock::Lock;
use std::{
    env,
    path::{Path, PathBuf},
};

/// Compares every event that is linked into this binary with the lock at this path.
///
/// A relative path starts at the working directory, which is the root of the package in `cargo test`.
/// `OUTBOX_LOCK=update` in the environment records what is new and breaks nothing. See the [module](self).
///
/// # Errors
///
/// Everything that is wrong, at once: changes that break something, changes that are not recorded, a lock that is
/// missing or cannot be read.
pub fn check(path: impl AsRef<Path>) -> Result<Checked, CatalogErrors> {
    Check::new(path).run()
}

/// Every way in which what one schema says is written cannot be read as another says. `breaks` only names the rules.
///
/// This is the judgement behind [`check`], for whoever keeps schemas elsewhere.
pub fn differences_between(
    written: &schemars::Schema,
    readable: &schemars::Schema,
    breaks: Breaks,
) -> Vec<Difference> {
    let canonical = |schema: &schemars::Schema| canonical::canonical(schema.as_value());
    compare::differences(&canonical(written), &canonical(readable), breaks)
}

/// A comparison with a lock, with choices.
///
/// ```no_run
/// use outbox_core::catalog::Check;
///
/// // Only the events that this crate declares: its dependencies have locks of their own, and its tests have none.
/// Check::new("events.lock.json").of_crate("my_crate").run().unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is compared before `run`"]
pub struct Check {
    path: PathBuf,
    crates: Vec<String>,
    events: Option<Vec<&'static EventDescriptor>>,
    updates: bool,
}

/// What a comparison came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// How many events were compared.
    pub events: usize,
    /// What was recorded, one text for each change; empty unless the lock was updated.
    pub recorded: Vec<String>,
}

impl Check {
    /// Of all events that are linked in; updates when the environment says `OUTBOX_LOCK=update`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let updates = env::var_os("OUTBOX_LOCK").is_some_and(|what| what == "update");
        Self { path: path.as_ref().to_owned(), crates: Vec::new(), events: None, updates }
    }

    /// Only of the events that this crate declares, by its name in Rust (`my_crate`). Several may be named.
    pub fn of_crate(mut self, name: &str) -> Self {
        self.crates.push(name.replace('-', "_"));
        self
    }

    /// Of these events instead of those that are linked in: for events that are put together by hand.
    pub fn of_events(mut self, events: impl IntoIterator<Item = &'static EventDescriptor>) -> Self {
        let mut events: Vec<_> = events.into_iter().collect();
        events.sort_by_key(|event| (event.event_type, event.event_version, event.file, event.line));
        self.events = Some(events);
        self
    }

    /// Whether to record what is new, whatever the environment says.
    pub fn updating(mut self, updates: bool) -> Self {
        self.updates = updates;
        self
    }

    /// Compares.
    ///
    /// # Errors
    ///
    /// As [`check`].
    pub fn run(&self) -> Result<Checked, CatalogErrors> {
        let all = self.events.clone().unwrap_or_else(catalog);
        let own: Vec<_> = all.iter().copied().filter(|event| self.is_own(event)).collect();
        let lock = Lock::load(&self.path)?;
        if lock.is_none() && !self.updates {
            let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
            return Err(CatalogError::NoLock { path: path.display().to_string() }.into());
        }
        let mut verdict = verdict::judge(lock.unwrap_or_default(), &own, &all);
        if !self.updates {
            verdict.errors.append(&mut verdict.changes);
        }
        if !verdict.errors.is_empty() {
            return Err(CatalogErrors(verdict.errors));
        }
        if !verdict.changes.is_empty() {
            verdict.lock.store(&self.path)?;
        }
        let told = |change: CatalogError| match change {
            CatalogError::Unrecorded { logical_name, change } => format!("{logical_name}: {change}"),
            other => other.to_string(),
        };
        Ok(Checked { events: own.len(), recorded: verdict.changes.into_iter().map(told).collect() })
    }

    fn is_own(&self, event: &EventDescriptor) -> bool {
        let declared_in = event.module.split("::").next().unwrap_or_default();
        self.crates.is_empty() || self.crates.iter().any(|name| name == declared_in)
    }
}

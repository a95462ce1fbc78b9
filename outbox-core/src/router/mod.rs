//! Name → code: which handlers a stored row goes to.

mod builder;
mod errors;

pub use builder::RouterBuilder;
pub use errors::{RouterError, RouterErrors};

use crate::{
    decide::{Failure, HandlerReport},
    handler::{Call, MessageContext, Source, States, Timing, guarded},
    row::{ClaimedRow, ErrorClass},
    store::Route,
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The handlers of every event, checked once. Cheap to clone; share it between relays.
#[derive(Clone, Debug)]
pub struct Router {
    by_type: Arc<BTreeMap<&'static str, Vec<Entry>>>,
    states: Arc<States>,
    routes: Arc<[Route]>,
}

/// One registered handler.
pub(crate) struct Entry {
    id: String,
    source: Source,
    event: EventFacts,
    run: Box<crate::handler::Run>,
}

/// What the router needs to know of a handler's event.
#[derive(Clone, Copy)]
pub(crate) struct EventFacts {
    event_type: &'static str,
    event_version: u16,
    logical_name: &'static str,
    ordered: bool,
    reads: fn(u16) -> bool,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.id, self.event.logical_name, self.source)
    }
}

impl Router {
    /// Starts a router.
    pub fn builder() -> RouterBuilder {
        RouterBuilder::default()
    }

    /// The names and versions that some handler reads, sorted. A relay claims only these; all other rows stay
    /// pending for a build that knows them.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The ids of all handlers, by event.
    pub fn handlers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.by_type
            .iter()
            .flat_map(|(event, entries)| entries.iter().map(|entry| (*event, entry.id.as_str())))
    }

    /// Runs the owed handlers of a row, one after the other, and reports what came of each.
    ///
    /// Handlers that the row's progress names do not run again. A failing handler does not keep the others from
    /// running.
    ///
    /// Each report is there as soon as its handler ended, so that nothing is forgotten when the rest is cut off.
    pub(crate) async fn dispatch(&self, row: Arc<ClaimedRow>, timing: Timing, reports: &Reports) {
        let context = MessageContext::new(row, timing);
        let row = context.row();
        let version = row.envelope.event_version;
        let entries = self.by_type.get(&*row.envelope.event_type).map(Vec::as_slice).unwrap_or_default();
        let readers: Vec<_> = entries.iter().filter(|entry| (entry.event.reads)(version)).collect();
        if readers.is_empty() {
            return reports.push(unroutable(row));
        }
        for entry in readers.into_iter().filter(|entry| !row.progress.contains_key(&entry.id)) {
            let call = Call::new(context.clone(), self.states.clone());
            let result = guarded(&*entry.run, call).await;
            reports.push(HandlerReport { handler: Some(entry.id.clone()), result });
        }
    }
}

/// What the handlers of one row have reported so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports(Arc<Mutex<Vec<HandlerReport>>>);

impl Reports {
    pub(crate) fn push(&self, report: HandlerReport) {
        self.lock().push(report);
    }

    pub(crate) fn take(&self) -> Vec<HandlerReport> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HandlerReport>> {
        // A report is pushed whole, so a panic elsewhere leaves the list as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A relay claims only what its router reads, so this says that somebody else's row was handed in.
fn unroutable(row: &ClaimedRow) -> HandlerReport {
    let text = format!("no handler of this router reads {}", row.envelope.logical_name());
    HandlerReport { handler: None, result: Err(Failure::new(ErrorClass::Unroutable, &text)) }
}

//! Name → code: which handlers a stored row goes to.

mod builder;
mod circuit;
mod errors;
mod gates;
#[cfg(feature = "tower")]
mod layers;
mod names;

pub use circuit::CircuitPolicy;
pub(crate) use gates::{Claimable, Gates};

pub use builder::RouterBuilder;
pub use errors::{RouterError, RouterErrors};
#[cfg(feature = "tower")]
pub use layers::{CallError, HandlerService};

use crate::{
    decide::{Failure, HandlerReport},
    handler::{Call, Hold, MessageContext, Run, Source, States, guarded},
    observe::{Observed, Observers},
    row::{ClaimedRow, ErrorClass},
    store::{HandlerSets, Route},
    trace,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tracing::{Instrument, Span};

/// The handlers of every event, checked once. Cheap to clone; share it between relays.
#[derive(Clone, Debug)]
pub struct Router {
    /// In the order in which they were registered.
    entries: Arc<[Entry]>,
    /// The handlers of each stored name, former names included, by their place in the list.
    by_name: Arc<BTreeMap<&'static str, Vec<usize>>>,
    states: Arc<States>,
    routes: Arc<[Route]>,
    ignored: Arc<BTreeSet<Route>>,
    proceed: Arc<[&'static str]>,
}

/// One registered handler.
pub(crate) struct Entry {
    id: Arc<str>,
    source: Source,
    event: EventFacts,
    run: Arc<Run>,
}

/// What the router needs to know of a handler's event.
#[derive(Clone, Copy)]
pub(crate) struct EventFacts {
    event_type: &'static str,
    event_version: u16,
    logical_name: &'static str,
    aliases: &'static [&'static str],
    proceeds: bool,
    reads: fn(u16) -> bool,
}

impl EventFacts {
    /// Its name and its former names.
    fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.event_type).chain(self.aliases.iter().copied())
    }
}

impl Entry {
    /// The span of one call, linked to the one in which the event was raised.
    fn span(&self, row: &ClaimedRow) -> Span {
        let ClaimedRow { id, envelope, attempts, claims, .. } = row;
        let span = tracing::info_span!(
            "outbox.handle",
            handler = &*self.id,
            event = envelope.logical_name(),
            id = id.0,
            message_id = %envelope.message_id,
            correlation_id = envelope.correlation_id,
            attempt = attempts,
            claims,
        );
        trace::link(&span, envelope);
        span
    }
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

    /// The names and versions that some handler reads or that are ignored, sorted. A relay claims only these; all other rows stay
    /// pending for a build that knows them.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The ids of all handlers, by event.
    pub fn handlers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = |name: &'static str, index: &usize| {
            let entry = &self.entries[*index];
            (entry.event.event_type == name).then_some((name, &*entry.id))
        };
        self.by_name
            .iter()
            .flat_map(move |(name, indexes)| indexes.iter().filter_map(move |index| own(name, index)))
    }

    /// The same handlers, each as the function makes it.
    #[cfg(feature = "testing")]
    pub(crate) fn with_handlers(&self, make: impl Fn(Arc<Run>) -> Arc<Run>) -> Self {
        let entry = |entry: &Entry| Entry { id: entry.id.clone(), run: make(entry.run.clone()), ..*entry };
        Self { entries: self.entries.iter().map(entry).collect(), ..self.clone() }
    }

    /// The event types whose dead letters do not block their ordering key.
    pub(crate) fn proceed(&self) -> &[&'static str] {
        &self.proceed
    }

    /// The ids of the handlers that read a name and version.
    pub(crate) fn readers(&self, route: &Route) -> impl Iterator<Item = &str> {
        self.named(route.event_type, route.event_version).map(|entry| &*entry.id)
    }

    /// The handlers that read a version of a stored name, in the order in which they were registered.
    fn named(&self, name: &str, version: u16) -> impl Iterator<Item = &Entry> {
        let indexes = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let entries = indexes.iter().map(|index| &self.entries[*index]);
        entries.filter(move |entry| (entry.event.reads)(version))
    }

    /// The handlers of each logical name, for the comparison with other relays.
    pub(crate) fn handler_sets(&self) -> HandlerSets {
        let ids = |route: &Route| self.readers(route).map(str::to_owned).collect();
        self.routes.iter().map(|route| (route.to_string(), ids(route))).collect()
    }

    /// Runs the owed handlers of a row, one after the other, and reports what came of each.
    ///
    /// Handlers that the row's progress names do not run again. A failing handler does not keep the others from
    /// running.
    ///
    /// Each report is there as soon as its handler ended, so that nothing is forgotten when the rest is cut off.
    pub(crate) async fn dispatch(
        &self,
        row: Arc<ClaimedRow>,
        hold: Hold,
        (gates, observers): (&Gates, &Observers),
        reports: &Reports,
    ) {
        let context = MessageContext::new(row, hold);
        let row = context.row();
        let readers: Vec<_> = self.named(&row.envelope.event_type, row.envelope.event_version).collect();
        if readers.is_empty() {
            return reports.push(self.without_handlers(row));
        }
        for entry in readers.into_iter().filter(|entry| !row.progress.contains_key(&*entry.id)) {
            let mut result = gates.admit(&entry.id);
            if result.is_ok() {
                let call = Call::new(entry.id.clone(), context.clone().for_next_call(), self.states.clone());
                let started = Instant::now();
                result = guarded(&*entry.run, call).instrument(entry.span(row)).await;
                gates.reported(&entry.id, &mut result);
                let (handler, took) = (&*entry.id, started.elapsed());
                let result = result.as_ref().map_err(|failure| failure.class).copied();
                observers.tell(&Observed::Handled { handler, row, took, result });
            }
            reports.push(HandlerReport { handler: Some(entry.id.to_string()), result });
        }
    }

    /// An ignored event is done. A relay claims only what its router reads, so anything else is somebody else's row.
    fn without_handlers(&self, row: &ClaimedRow) -> HandlerReport {
        let is_row = |route: &Route| {
            row.envelope.event_type == route.event_type && row.envelope.event_version == route.event_version
        };
        if self.ignored.iter().any(is_row) {
            return HandlerReport { handler: None, result: Ok(()) };
        }
        let text = format!("no handler of this router reads {}", row.envelope.logical_name());
        HandlerReport { handler: None, result: Err(Failure::new(ErrorClass::Unroutable, &text)) }
    }
}

/// What the handlers of one row have reported so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports(Arc<Mutex<Vec<HandlerReport>>>);

impl Reports {
    pub(crate) fn push(&self, report: HandlerReport) {
        self.lock().push(report);
    }

    pub(crate) fn so_far(&self) -> Vec<HandlerReport> {
        self.lock().clone()
    }

    pub(crate) fn take(&self) -> Vec<HandlerReport> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HandlerReport>> {
        // A report is pushed whole, so a panic elsewhere leaves the list as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

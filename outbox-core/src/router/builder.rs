//! Collects handlers and checks them all at once.

use super::{Entry, EventFacts, Router, RouterError, RouterErrors, names};
use crate::{
    event::{OutboxEvent, catalog},
    handler::{
        ByStruct, Call, EventHandler, Handler, HandlerError, Requirement, Run, Source, States, discovered,
        started,
    },
    store::Route,
};
use std::{
    any::type_name,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Builds a [`Router`].
#[must_use]
#[derive(Debug, Default)]
pub struct RouterBuilder {
    entries: Vec<(Entry, Vec<Requirement>)>,
    states: States,
    expected: Vec<(String, Source)>,
    errors: Vec<RouterError>,
    ignored: BTreeMap<Route, Source>,
    discovers: bool,
    #[cfg(feature = "tower")]
    pub(super) layers: super::layers::Layers,
}

impl RouterBuilder {
    /// Gives a value that handlers take as [`State<T>`](crate::State). One of each type.
    #[track_caller]
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, state: T) -> Self {
        if !self.states.insert(state) {
            self.errors
                .push(RouterError::DuplicateState { state: type_name::<T>(), source: Source::caller() });
        }
        self
    }

    /// Registers a function under a stable id.
    #[track_caller]
    pub fn on<Args, H: Handler<Args>>(mut self, id: &str, handler: H) -> Self {
        self.install(id, Source::caller(), handler);
        self
    }

    /// Registers a struct under a stable id.
    #[track_caller]
    pub fn on_struct<E: OutboxEvent, H: EventHandler<E>>(self, id: &str, handler: H) -> Self {
        self.on::<ByStruct<E>, _>(id, Arc::new(handler))
    }

    /// Registers every `#[handler]` that is linked into this binary. Calling it again changes nothing.
    pub fn discover(mut self) -> Self {
        if !std::mem::replace(&mut self.discovers, true) {
            for handler in discovered() {
                (handler.install)(&mut self);
            }
        }
        self
    }

    /// Refuses to build when one of these handlers is not registered: a crate that nothing refers to is not linked,
    /// and its handlers would be missing silently.
    #[track_caller]
    pub fn expect<const N: usize>(mut self, ids: [&str; N]) -> Self {
        let source = Source::caller();
        self.expected.extend(ids.map(|id| (id.to_owned(), source)));
        self
    }

    /// Dispatches the rows of an event without any handler, in every version that it reads and under each of its names.
    /// Without this they stay pending for a build that handles them.
    #[track_caller]
    pub fn ignore<E: OutboxEvent>(mut self) -> Self {
        let versions = (1..=E::EVENT_VERSION).filter(|version| E::reads(*version));
        let versions: Vec<_> = versions.collect();
        for name in std::iter::once(E::EVENT_TYPE).chain(E::ALIASES.iter().copied()) {
            self = self.ignore_versions(name, versions.clone());
        }
        self
    }

    /// As [`ignore`](Self::ignore), for an event whose Rust type is gone.
    #[track_caller]
    pub fn ignore_versions(
        mut self,
        event_type: &'static str,
        versions: impl IntoIterator<Item = u16>,
    ) -> Self {
        let source = Source::caller();
        let routes = versions.into_iter().map(|event_version| Route { event_type, event_version });
        self.ignored.extend(routes.map(|route| (route, source)));
        self
    }

    #[doc(hidden)]
    pub fn install<Args, H: Handler<Args>>(&mut self, id: &str, source: Source, handler: H) {
        let event = EventFacts {
            event_type: H::Event::EVENT_TYPE,
            event_version: H::Event::EVENT_VERSION,
            logical_name: H::Event::LOGICAL_NAME,
            aliases: H::Event::ALIASES,
            proceeds: H::Event::PROCEEDS,
            reads: H::Event::reads,
        };
        // The only code that is compiled per handler; everything around it knows no types.
        let run: Box<Run> = Box::new(move |call| {
            let envelope = &call.context().row().envelope;
            let event =
                H::Event::decode(envelope.event_version, &envelope.payload).map_err(HandlerError::decode)?;
            handler.call(event, call)
        });
        self.push(id, source, event, run, H::requires());
    }

    fn push(
        &mut self,
        id: &str,
        source: Source,
        event: EventFacts,
        handler: Box<Run>,
        requires: Vec<Requirement>,
    ) {
        let run = Arc::new(move |call: &Call| started(&*handler, call));
        self.entries.push((Entry { id: id.into(), source, event, run }, requires));
    }

    /// Checks everything and builds the router.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, at once and with its place: ids that are used twice or outside the grammar, states
    /// that are missing or given twice, expected handlers that are not linked, two types under one logical name or
    /// former name, versions that a chain of upcasts leaves out, and events that are ignored and handled.
    pub fn build(self) -> Result<Router, RouterErrors> {
        let Self { entries, states, expected, mut errors, ignored, .. } = self.layered();
        let catalog = catalog();
        errors.extend(names::errors(&catalog));
        errors.extend(
            entries.iter().flat_map(|(entry, requirements)| entry_errors(entry, requirements, &states)),
        );
        errors.extend(id_errors(&entries, expected));
        errors.extend(ignored.iter().flat_map(|(route, source)| ignored_errors(&entries, route, *source)));
        if !errors.is_empty() {
            return Err(RouterErrors(errors));
        }
        let entries: Arc<[Entry]> = entries.into_iter().map(|(entry, _)| entry).collect();
        let mut by_name: BTreeMap<&'static str, Vec<usize>> = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            for name in entry.event.names() {
                by_name.entry(name).or_default().push(index);
            }
        }
        let ignored: BTreeSet<_> = ignored.into_keys().collect();
        let mut routes: BTreeSet<_> = entries.iter().flat_map(|entry| routes(entry.event)).collect();
        routes.extend(&ignored);
        names::warn_of_unread(&catalog, &routes);
        let proceeding = entries.iter().filter(|entry| entry.event.proceeds);
        let proceed: BTreeSet<_> = proceeding.flat_map(|entry| entry.event.names()).collect();
        Ok(Router {
            entries,
            by_name: Arc::new(by_name),
            states: Arc::new(states),
            routes: routes.into_iter().collect(),
            ignored: Arc::new(ignored),
            proceed: proceed.into_iter().collect(),
        })
    }
}

impl RouterBuilder {
    #[cfg(not(feature = "tower"))]
    fn layered(self) -> Self {
        self
    }

    /// With the layers around the handlers.
    #[cfg(feature = "tower")]
    fn layered(mut self) -> Self {
        let is_there = |id: &str| self.entries.iter().any(|(entry, _)| &*entry.id == id);
        let errors: Vec<_> = self.layers.errors(is_there).collect();
        self.errors.extend(errors);
        for (entry, _) in &mut self.entries {
            entry.run = self.layers.around(&entry.id, entry.run.clone());
        }
        self
    }
}

/// An event cannot be handled and ignored at once.
fn ignored_errors(entries: &[(Entry, Vec<Requirement>)], route: &Route, source: Source) -> Vec<RouterError> {
    let reads = |entry: &Entry| {
        entry.event.names().any(|name| name == route.event_type) && (entry.event.reads)(route.event_version)
    };
    let error = |entry: &Entry| RouterError::Ignored {
        id: entry.id.to_string(),
        event: route.to_string(),
        sources: [entry.source, source],
    };
    entries.iter().map(|(entry, _)| entry).filter(|entry| reads(entry)).map(error).collect()
}

/// Every version of an event that it reads, under each of its names.
fn routes(event: EventFacts) -> impl Iterator<Item = Route> {
    let versions = (1..=event.event_version).filter(move |version| (event.reads)(*version));
    versions.flat_map(move |event_version| {
        event.names().map(move |event_type| Route { event_type, event_version })
    })
}

fn entry_errors(entry: &Entry, requirements: &[Requirement], states: &States) -> Vec<RouterError> {
    let Entry { id, source, .. } = entry;
    let mut errors = Vec::new();
    if let Err(reason) = check_id(id) {
        errors.push(RouterError::InvalidId { id: id.to_string(), source: *source, reason });
    }
    let missing = requirements.iter().filter(|requirement| !states.meets(requirement));
    errors.extend(missing.map(|requirement| RouterError::MissingState {
        id: id.to_string(),
        source: *source,
        state: requirement.type_name,
    }));
    errors
}

fn id_errors(entries: &[(Entry, Vec<Requirement>)], expected: Vec<(String, Source)>) -> Vec<RouterError> {
    let mut seen: HashMap<&str, Source> = HashMap::new();
    let mut errors = Vec::new();
    for (Entry { id, source, .. }, _) in entries {
        if let Some(first) = seen.insert(id, *source) {
            errors.push(RouterError::DuplicateHandler { id: id.to_string(), sources: [first, *source] });
        }
    }
    let missing = expected.into_iter().filter(|(id, _)| !seen.contains_key(id.as_str()));
    errors.extend(missing.map(|(id, source)| RouterError::NotLinked { id, source }));
    errors
}

/// The longest handler id, in bytes.
const MAX_HANDLER_ID_BYTES: usize = 200;

/// The grammar of event names; `#[handler]` checks it at compile time, `on` only here.
fn check_id(id: &str) -> Result<(), String> {
    let segment_is_fine = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_lowercase())
            && segment.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
            && !segment.ends_with('-')
            && !segment.contains("--")
    };
    if id.len() > MAX_HANDLER_ID_BYTES {
        return Err(format!("has {} bytes, the limit is {MAX_HANDLER_ID_BYTES}", id.len()));
    }
    if id.split('.').count() < 2 || !id.split('.').all(segment_is_fine) {
        return Err(
            "is not two or more lowercase kebab-case segments, such as \"mail.confirm-order\"".to_owned()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_id;

    #[test]
    fn handler_ids_follow_the_grammar_of_event_names() {
        for good in ["mail.confirm-order", "a.b", "search.index.v2"] {
            assert_eq!(check_id(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "mail",
            "Mail.confirm",
            "mail.",
            ".mail",
            "mail.a--b",
            "mail.a-",
            "mail.9",
            "mail.a_b",
            "m.ü",
        ] {
            assert!(check_id(bad).is_err(), "{bad}");
        }
        assert!(check_id(&format!("a.{}", "b".repeat(MAX_TEST_LEN))).is_err());
    }

    const MAX_TEST_LEN: usize = 199;
}

//! Which handlers may be called now, and which rows are worth a claim: circuits and pauses.

use super::{CircuitPolicy, Router, circuit::Circuit};
use crate::{
    decide::Failure,
    row::ErrorClass,
    store::{Pause, Route},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How long a row waits whose handler is paused: it is looked at again in case the pause is over.
const PAUSED_WAIT: Duration = Duration::from_secs(10);

/// The gates of one relay. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    policy: CircuitPolicy,
    circuits: HashMap<String, Circuit>,
    pauses: BTreeSet<Pause>,
}

/// What may be claimed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Claimable {
    /// Rows that some handler may be called for.
    pub(crate) routes: Vec<Route>,
    /// Rows of which one is wanted, to see whether what was down is up again.
    pub(crate) probes: Vec<Route>,
}

/// How far a handler is open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Openness {
    Closed,
    Probe,
    Open,
}

impl Gates {
    pub(crate) fn new(policy: CircuitPolicy) -> Self {
        Self(Arc::new(Mutex::new(Inner { policy, ..Inner::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code of others runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what operators have paused. Returns whether that is news.
    pub(crate) fn set_pauses(&self, pauses: BTreeSet<Pause>) -> bool {
        let mut inner = self.lock();
        let news = inner.pauses != pauses;
        inner.pauses = pauses;
        news
    }

    /// What may be claimed now. A probe is handed out once: whoever asks has to claim for it.
    pub(crate) fn claimable(&self, router: &Router) -> Claimable {
        let mut inner = self.lock();
        let claimable = inner.claimable(router);
        let probed = claimable.probes.iter().flat_map(|route| router.readers(route));
        for id in probed {
            if let Some(circuit) = inner.circuits.get_mut(id).filter(|circuit| circuit.is_due()) {
                circuit.take_ticket();
            }
        }
        claimable
    }

    /// Nothing was found to probe with; the next claim tries again.
    pub(crate) fn no_probe(&self, router: &Router, probes: &[Route]) {
        let mut inner = self.lock();
        for id in probes.iter().flat_map(|route| router.readers(route)) {
            if let Some(circuit) = inner.circuits.get_mut(id) {
                circuit.return_ticket();
            }
        }
    }

    /// What some handler may be called for now, as a probe as well. It takes no ticket: a row that is taken over is a
    /// probe because one is due.
    pub(crate) fn callable(&self, router: &Router) -> Vec<Route> {
        let Claimable { mut routes, probes } = self.lock().claimable(router);
        routes.extend(probes);
        routes
    }

    /// Whether a handler may be called now.
    ///
    /// # Errors
    ///
    /// Why not, as the outcome of the call that is not made.
    pub(super) fn admit(&self, id: &str) -> Result<(), Failure> {
        let mut inner = self.lock();
        let refused =
            |class, text: &str, wait| Err(Failure { retry_after: Some(wait), ..Failure::new(class, text) });
        if inner.pauses.contains(&Pause::Handler(id.to_owned())) || inner.pauses.contains(&Pause::All) {
            return refused(ErrorClass::Paused, "not called, because an operator has paused it", PAUSED_WAIT);
        }
        match inner.circuits.get_mut(id).map_or(Ok(()), Circuit::admit) {
            Ok(()) => Ok(()),
            Err(wait) => {
                let text = "not called, because an earlier call found what it needs unavailable";
                refused(ErrorClass::Unavailable, text, wait)
            }
        }
    }

    /// What came of a call that was admitted. An unavailable one gets the wait until the next probe.
    pub(super) fn reported(&self, id: &str, result: &mut Result<(), Failure>) {
        let mut inner = self.lock();
        let policy = inner.policy;
        let Err(failure) = result else {
            if inner.circuits.remove(id).is_some() {
                tracing::info!(handler = id, "what the handler needs is available again");
            }
            return;
        };
        match (failure.class, inner.circuits.get_mut(id)) {
            (ErrorClass::Unavailable, None) => {
                let error = failure.error.as_str();
                tracing::warn!(
                    handler = id,
                    error,
                    "what the handler needs is unavailable; it is probed from time to time"
                );
                let circuit = Circuit::open(&policy, failure.retry_after, fastrand::f64());
                failure.retry_after = Some(circuit.wait());
                inner.circuits.insert(id.to_owned(), circuit);
            }
            (ErrorClass::Unavailable, Some(circuit)) => {
                // Calls that ran when it opened say nothing new.
                if circuit.is_probing() {
                    circuit.still_down(&policy, failure.retry_after, fastrand::f64());
                }
                failure.retry_after = Some(circuit.wait());
            }
            (ErrorClass::Timeout | ErrorClass::Interrupted | ErrorClass::LeaseExpired, Some(circuit)) => {
                circuit.undecided();
            }
            // It answered, so it is there.
            (_, Some(circuit)) if circuit.is_probing() => drop(inner.circuits.remove(id)),
            _ => {}
        }
    }
}

impl Inner {
    fn claimable(&self, router: &Router) -> Claimable {
        let mut claimable = Claimable::default();
        if self.pauses.contains(&Pause::All) {
            return claimable;
        }
        if self.circuits.is_empty() && self.pauses.is_empty() {
            claimable.routes = router.routes().to_vec();
            return claimable;
        }
        for route in router.routes() {
            if self.pauses.contains(&Pause::Event(route.event_type.to_owned())) {
                continue;
            }
            let openness = router.readers(route).map(|id| self.openness(id)).max();
            match openness.unwrap_or(Openness::Open) {
                Openness::Open => claimable.routes.push(*route),
                Openness::Probe => claimable.probes.push(*route),
                Openness::Closed => {}
            }
        }
        claimable
    }

    fn openness(&self, id: &str) -> Openness {
        if self.pauses.contains(&Pause::Handler(id.to_owned())) {
            return Openness::Closed;
        }
        match self.circuits.get(id) {
            None => Openness::Open,
            Some(circuit) if circuit.is_due() => Openness::Probe,
            Some(_) => Openness::Closed,
        }
    }
}

//! Whether a relay does its work.

use crate::{clock::now, store::StoreError};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long the claiming loop may be busy with one thing before it counts as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(15);

/// Tells whether a relay works; see [`Relay::health`](super::Relay::health). Clones tell the same.
///
/// It never waits: it reads what the relay noted last, so it can be asked from a health endpoint.
#[derive(Clone, Debug, Default)]
pub struct RelayHealth(Arc<Mutex<State>>);

/// What a relay does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HealthStatus {
    /// It claims and marks.
    Working,
    /// It does not run: it was not started, was stopped, or its task was dropped or panicked.
    Stopped,
    /// Something that it needs the database for fails; it goes on trying.
    Failing {
        /// Since when.
        since: Instant,
        /// The error.
        error: String,
    },
    /// Its loop has been busy with one thing for more than 15 s: the database does not answer, or a handler blocks the
    /// thread.
    Stalled {
        /// Since when.
        since: Instant,
    },
}

#[derive(Debug, Default)]
struct State {
    running: u32,
    /// What fails, since when and why.
    failing: BTreeMap<&'static str, (Instant, String)>,
    busy_since: Option<Instant>,
}

impl RelayHealth {
    /// What the relay does now.
    pub fn status(&self) -> HealthStatus {
        let state = self.lock();
        if state.running == 0 {
            return HealthStatus::Stopped;
        }
        if let Some(since) = state.busy_since.filter(|since| now().duration_since(*since) > STALLED_AFTER) {
            return HealthStatus::Stalled { since };
        }
        match state.failing.values().min_by_key(|(since, _)| *since) {
            Some((since, error)) => HealthStatus::Failing { since: *since, error: error.clone() },
            None => HealthStatus::Working,
        }
    }

    /// Whether it [works](HealthStatus::Working).
    pub fn is_healthy(&self) -> bool {
        self.status() == HealthStatus::Working
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of others runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts as running until the result is dropped, whatever drops it.
    pub(crate) fn started(&self) -> Started {
        self.lock().running += 1;
        Started(self.clone())
    }

    /// Notes what came of asking the database. What fails goes on failing until the same succeeds: a standby that lets
    /// itself be read does not make a relay healthy that cannot claim.
    pub(crate) fn tried<T>(&self, doing: &'static str, result: &Result<T, StoreError>) {
        let mut state = self.lock();
        match result {
            Ok(_) => drop(state.failing.remove(doing)),
            Err(error) => {
                let since = state.failing.get(doing).map_or_else(now, |(since, _)| *since);
                state.failing.insert(doing, (since, error.to_string()));
            }
        }
    }

    pub(crate) fn busy(&self, busy: bool) {
        self.lock().busy_since = busy.then(now);
    }
}

/// A relay that runs.
#[derive(Debug)]
pub(crate) struct Started(RelayHealth);

impl Drop for Started {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running = state.running.saturating_sub(1);
        state.busy_since = None;
        state.failing.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreErrorKind;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_busy_with_one_thing_for_too_long_is_stalled() {
        let health = RelayHealth::default();
        let _started = health.started();
        health.busy(true);
        tokio::time::advance(STALLED_AFTER).await;
        assert!(health.is_healthy());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(matches!(health.status(), HealthStatus::Stalled { .. }));
        health.busy(false);
        assert!(health.is_healthy());
    }

    #[test]
    fn a_relay_is_healthy_while_it_runs_and_the_database_answers() {
        let health = RelayHealth::default();
        assert_eq!(health.status(), HealthStatus::Stopped);
        let started = health.started();
        assert!(health.is_healthy());
        health.tried::<()>("claim", &Err(StoreError::new(StoreErrorKind::Unavailable, "away")));
        assert!(matches!(health.status(), HealthStatus::Failing { error, .. } if error.contains("away")));
        health.tried("read what is paused", &Ok(()));
        assert!(!health.is_healthy(), "it still cannot claim");
        health.tried("claim", &Ok(()));
        assert!(health.is_healthy());
        drop(started);
        assert_eq!(health.status(), HealthStatus::Stopped);
    }
}

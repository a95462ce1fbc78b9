//! While the database is away all of a relay's tasks share one attempt at a time.

use crate::store::{StoreError, StoreErrorKind};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Shortest and longest wait between two attempts.
const WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Whether the database is away. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outage(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    next: Option<Instant>,
}

impl Outage {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of others runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When something that is due may be asked of the database.
    pub(crate) fn not_before(&self, due: Instant) -> Instant {
        self.lock().next.map_or(due, |next| next.max(due))
    }

    /// Whether the caller may ask the database now. During an outage this is true for one caller, once a wait.
    pub(crate) fn may_try(&self) -> bool {
        let mut state = self.lock();
        match state.next {
            Some(next) if Instant::now() < next => false,
            Some(_) => {
                state.next = Some(Instant::now() + wait(state.failures));
                true
            }
            None => true,
        }
    }

    /// What came of asking.
    pub(crate) fn tried<T>(&self, result: &Result<T, StoreError>) {
        let mut state = self.lock();
        if result.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Unavailable) {
            state.failures = state.failures.saturating_add(1);
            state.next = Some(Instant::now() + wait(state.failures));
        } else {
            *state = State::default();
        }
    }
}

/// Spread upwards, so that relays which lost the database together do not come back together.
fn wait(failures: u32) -> Duration {
    let doubled = WAIT.0.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(WAIT.1);
    doubled.mul_f64(1.0 + 0.25 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Unavailable, "away"))
    }

    #[tokio::test(start_paused = true)]
    async fn ten_minutes_away_are_at_most_one_attempt_a_second() {
        let outage = Outage::default();
        let mut attempts = 0;
        assert!(outage.may_try());
        outage.tried(&away());
        for _ in 0..600 * 100 {
            // Several tasks ask whenever they like.
            for _ in 0..3 {
                if outage.may_try() {
                    attempts += 1;
                    outage.tried(&away());
                }
            }
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        // The wait grows to five seconds, spread by a quarter: without growth there were nearly five hundred.
        assert!((96..=125).contains(&attempts), "{attempts}");
        outage.tried(&Ok(()));
        let due = Instant::now();
        assert!(outage.may_try() && outage.may_try() && outage.not_before(due) == due);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_an_error_ends_it() {
        let outage = Outage::default();
        outage.tried(&away());
        assert!(!outage.may_try());
        outage.tried::<()>(&Err(StoreError::new(StoreErrorKind::Other, "refused")));
        assert!(outage.may_try());
    }
}

//! When to claim next: at once while there is work, later and later while there is none.

use super::config::RelayConfig;
use crate::wake::Commits;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The shortest and the longest wait after a failing claim.
const MIN_FAILURE_WAIT: Duration = Duration::from_millis(100);
const MAX_FAILURE_WAIT: Duration = Duration::from_secs(5);

/// What a claim says about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// As many rows as asked for: there are more.
    Full,
    /// Some, but not all that was asked for.
    Some,
    /// None.
    Nothing,
    /// The store failed.
    Failure,
}

#[derive(Debug)]
pub(crate) struct Pace {
    min: Duration,
    max: Duration,
    wait: Duration,
    failing: bool,
    next: Instant,
}

impl Pace {
    pub(crate) fn new(config: &RelayConfig) -> Self {
        let (min, max) = (config.poll_min, config.poll_max);
        Self { min, max, wait: min, failing: false, next: Instant::now() }
    }

    /// Ready when the next claim is due, or something was committed in this process. Cancel safe.
    pub(crate) async fn next(&self, commits: &mut Commits) {
        tokio::select! {
            () = sleep_until(self.next) => {}
            // While the store fails a commit says nothing new.
            () = commits.next(), if !self.failing => {}
        }
    }

    /// Rows that could not be claimed may be free now.
    pub(crate) fn hurry(&mut self) {
        if !self.failing {
            self.next = Instant::now();
        }
    }

    pub(crate) fn after(&mut self, found: Found) {
        self.failing = found == Found::Failure;
        self.wait = match found {
            Found::Full => Duration::ZERO,
            Found::Some => self.min,
            Found::Nothing => self.wait.saturating_mul(2).clamp(self.min, self.max),
            Found::Failure => {
                let least = self.min.clamp(MIN_FAILURE_WAIT, MAX_FAILURE_WAIT);
                self.wait.saturating_mul(2).clamp(least, MAX_FAILURE_WAIT)
            }
        };
        // Spread, so that relays which started together do not stay together.
        self.next = Instant::now() + self.wait.mul_f64(0.75 + 0.25 * fastrand::f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_longer_while_nothing_is_found_and_not_at_all_while_batches_are_full() {
        let mut pace = Pace::new(&RelayConfig::default());
        let mut waits = Vec::new();
        for found in [Found::Some, Found::Nothing, Found::Nothing, Found::Full] {
            pace.after(found);
            waits.push(pace.wait.as_millis());
        }
        assert_eq!(waits, [50, 100, 200, 0]);
        for _ in 0..20 {
            pace.after(Found::Nothing);
        }
        assert_eq!(pace.wait, Duration::from_secs(1));
        for _ in 0..20 {
            pace.after(Found::Failure);
        }
        assert_eq!(pace.wait, MAX_FAILURE_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_claim_is_tried_again_in_seconds_however_long_the_looks_are_apart() {
        let hour = Duration::from_hours(1);
        let mut pace = Pace::new(&RelayConfig { poll_min: hour, poll_max: hour, ..RelayConfig::default() });
        pace.after(Found::Failure);
        assert_eq!(pace.wait, MAX_FAILURE_WAIT);
        pace.after(Found::Nothing);
        assert_eq!(pace.wait, hour);
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_in_this_process_ends_the_wait() {
        let mut pace =
            Pace::new(&RelayConfig { poll_max: Duration::from_hours(1), ..RelayConfig::default() });
        for _ in 0..20 {
            pace.after(Found::Nothing);
        }
        let mut commits = Commits::subscribe();
        let asked = Instant::now();
        crate::wake::committed();
        pace.next(&mut commits).await;
        assert!(asked.elapsed() < Duration::from_secs(1));
    }
}

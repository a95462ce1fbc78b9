//! What keeps a handler from being called while the thing that it needs is down.

use std::time::Duration;
use tokio::time::Instant;

/// How long a handler is left alone after it said that what it needs is unavailable.
///
/// The first wait is `base`; while probes find it still down the wait doubles up to `cap`, less up to a quarter by
/// chance. Defaults: 1 s and 1 min. A handler that names a longer wait with `retry_after` gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitPolicy {
    /// First wait; at least 1 ms.
    pub base: Duration,
    /// Longest wait, at most 1 h.
    pub cap: Duration,
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), cap: Duration::from_mins(1) }
    }
}

/// An open circuit. One call goes through whenever its wait is over.
#[derive(Debug)]
pub(super) struct Circuit {
    wait: Duration,
    /// When the next probe may be made.
    due: Instant,
    /// A row was claimed for a probe that was not made yet.
    ticket: bool,
    /// A probe runs.
    probing: bool,
}

impl Circuit {
    pub(super) fn open(policy: &CircuitPolicy, asked: Option<Duration>, chance: f64) -> Self {
        let mut circuit = Self { wait: Duration::ZERO, due: Instant::now(), ticket: false, probing: false };
        circuit.still_down(policy, asked, chance);
        circuit
    }

    /// A probe, or the call that opened it, found the thing down.
    pub(super) fn still_down(&mut self, policy: &CircuitPolicy, asked: Option<Duration>, chance: f64) {
        self.wait = self.wait.saturating_mul(2).clamp(policy.base, policy.cap);
        let spread = self.wait.mul_f64(1.0 - 0.25 * chance.clamp(0.0, 1.0));
        let wait = asked.map_or(spread, |asked| asked.clamp(spread, Duration::from_hours(1)));
        self.due = Instant::now() + wait;
        self.ticket = false;
        self.probing = false;
    }

    pub(super) fn is_due(&self) -> bool {
        !self.probing && Instant::now() >= self.due
    }

    pub(super) fn is_probing(&self) -> bool {
        self.probing
    }

    /// Until the next probe. A probe that takes longer than the wait is waited for, once more as long.
    pub(super) fn wait(&self) -> Duration {
        let left = self.due.saturating_duration_since(Instant::now());
        let least = if self.probing { self.wait } else { Duration::from_millis(1) };
        left.max(least)
    }

    /// A row is being claimed for the next probe; nobody else claims for it before another wait is over.
    pub(super) fn take_ticket(&mut self) {
        self.ticket = true;
        self.due = Instant::now() + self.wait;
    }

    /// No row was found; the probe is due as before.
    pub(super) fn return_ticket(&mut self) {
        if std::mem::take(&mut self.ticket) {
            self.due = Instant::now();
        }
    }

    /// Whether this call may be the probe; otherwise how long to wait.
    pub(super) fn admit(&mut self) -> Result<(), Duration> {
        let now = Instant::now();
        if !self.ticket && (self.probing || now < self.due) {
            return Err(self.wait());
        }
        self.ticket = false;
        self.probing = true;
        self.due = now + self.wait;
        Ok(())
    }

    /// A probe that says nothing, such as one that was cut off: the next one is due after the same wait.
    pub(super) fn undecided(&mut self) {
        if std::mem::take(&mut self.probing) {
            self.due = self.due.max(Instant::now() + self.wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: CircuitPolicy = CircuitPolicy { base: Duration::from_secs(1), cap: Duration::from_secs(4) };

    #[tokio::test(start_paused = true)]
    async fn one_call_goes_through_whenever_the_wait_is_over_and_the_wait_doubles() {
        let mut circuit = Circuit::open(&POLICY, None, 0.0);
        let mut waits = Vec::new();
        for _ in 0..4 {
            let wait = circuit.admit().unwrap_err();
            waits.push(wait.as_secs());
            tokio::time::advance(wait).await;
            assert!(circuit.is_due());
            assert_eq!(circuit.admit(), Ok(()));
            assert!(circuit.admit().is_err(), "one probe at a time");
            circuit.still_down(&POLICY, None, 0.0);
        }
        assert_eq!(waits, [1, 2, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ticket_lets_one_call_through() {
        let mut circuit = Circuit::open(&POLICY, None, 0.0);
        circuit.take_ticket();
        assert!(!circuit.is_due());
        assert_eq!((circuit.admit(), circuit.admit().is_err()), (Ok(()), true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_longer_wait_that_was_asked_for_is_granted() {
        let mut circuit = Circuit::open(&POLICY, Some(Duration::from_secs(30)), 0.0);
        assert_eq!(circuit.admit(), Err(Duration::from_secs(30)));
        circuit.still_down(&POLICY, Some(Duration::ZERO), 0.0);
        assert_eq!(circuit.admit(), Err(Duration::from_secs(2)));
    }
}

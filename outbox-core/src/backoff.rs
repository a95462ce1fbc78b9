//! How often and how late a failed row is tried again.

use std::time::Duration;

/// The longest delay that a handler may ask for with `retry_after`: one day.
const MAX_REQUESTED_DELAY: Duration = Duration::from_hours(24);

/// Bounded exponential backoff with jitter.
///
/// After attempt *n* a row waits between half of *d* and *d*, where *d* = `base` · 2ⁿ⁻¹, at most `cap`. The spread
/// keeps rows that failed together from coming back together. Defaults: 10 attempts, base 1 s, cap 10 min; the last
/// attempt is then made about half an hour after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts before a row is dead; at least 1.
    pub max_attempts: u32,
    /// Upper bound of the first delay.
    pub base: Duration,
    /// Upper bound of every delay.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 10, base: Duration::from_secs(1), cap: Duration::from_mins(10) }
    }
}

impl RetryPolicy {
    /// The delay after `attempts` tries. `chance` in 0..=1 places it between the bounds.
    ///
    /// Finite and at most `cap` at any attempt number.
    pub fn delay(&self, attempts: u32, chance: f64) -> Duration {
        let doublings = attempts.saturating_sub(1).min(63);
        let factor = u32::try_from(1_u64 << doublings).unwrap_or(u32::MAX);
        let bound = self.base.saturating_mul(factor).min(self.cap);
        bound.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
    }

    /// As [`delay`](Self::delay), unless the handler asked for a delay itself (at most one day is granted).
    pub fn delay_or(&self, requested: Option<Duration>, attempts: u32, chance: f64) -> Duration {
        requested.map_or_else(|| self.delay(attempts, chance), |delay| delay.min(MAX_REQUESTED_DELAY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy =
        RetryPolicy { max_attempts: 5, base: Duration::from_secs(1), cap: Duration::from_mins(1) };

    #[test]
    fn doubles_until_the_cap() {
        let delays = [1, 2, 3, 7].map(|attempts| POLICY.delay(attempts, 1.0).as_secs());
        assert_eq!(delays, [1, 2, 4, 60]);
    }

    #[test]
    fn stays_finite_and_spread_at_any_attempt_number() {
        for attempts in [0, 8, 31, 32, 33, 64, 65, i32::MAX as u32, u32::MAX] {
            assert!(POLICY.delay(attempts, 1.0) <= POLICY.cap);
            assert!(POLICY.delay(attempts, 0.0) < POLICY.delay(attempts, 1.0));
        }
        let endless = RetryPolicy { base: Duration::MAX, cap: Duration::MAX, ..POLICY };
        assert!(endless.delay(u32::MAX, 0.3) > Duration::ZERO);
    }

    #[test]
    fn a_handler_may_ask_for_at_most_a_day() {
        assert_eq!(POLICY.delay_or(Some(Duration::from_secs(7)), 1, 0.0), Duration::from_secs(7));
        assert_eq!(POLICY.delay_or(Some(Duration::MAX), 1, 0.0), MAX_REQUESTED_DELAY);
    }
}

//! Every limit of a relay, checked before it starts.

use crate::{backoff::RetryPolicy, router::CircuitPolicy};
use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How a relay works. All fields have defaults; [`validate`](Self::validate) runs when a relay starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// Shown to operators as the owner of a claim, and how relays of a table know each other: each has its own. Default:
    /// host name, process id, a number, and four random digits: containers may share the former.
    pub name: String,
    /// Rows claimed at once, and the most that this relay holds, but for those whose marks are just being written; 1 to
    /// 1,000, default 100. While handlers are faster than claims, two claims of two batches are made side by side, or one
    /// of up to twenty batches of ordered rows, as long as that is no more than 8 MiB by the largest payload of the last
    /// claims. So a relay may hold six batches, or twenty-two of ordered rows, and memory is bounded by that times the
    /// payload.
    pub batch_size: u32,
    /// Handlers that run at once; 1 to 10,000, default 32. Rows beyond it wait in memory under their lease; one that
    /// has waited for half of it is given back, with its attempt.
    pub concurrency: usize,
    /// How long a claim owns its rows; 100 ms to 24 h, default 30 s. It is renewed while a handler runs. After a crash
    /// the rows wait this long.
    pub lease: Duration,
    /// The longest that one handler may run; more than zero, at most 24 h, default 30 s. It may be longer than `lease`.
    pub handler_timeout: Duration,
    /// Wait between claims that find little, right after work was found; default 50 ms. Doubles up to `poll_max`.
    pub poll_min: Duration,
    /// Longest wait between claims when nothing is found; default 1 s. A commit in the same process ends the wait.
    pub poll_max: Duration,
    /// How long running handlers get when the relay stops; default 20 s.
    pub shutdown_timeout: Duration,
    /// How often and how late failed rows are tried again.
    pub retry: RetryPolicy,
    /// How long a handler is left alone that said that what it needs is unavailable.
    pub circuit: CircuitPolicy,
    /// How long finished rows are kept.
    pub retention: Retention,
}

/// How long finished rows are kept. Whatever is not finished stays for ever, however old it is.
///
/// About once a minute one of the relays of a table purges, in batches of 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Dispatched rows, so that people can look; default 7 days. `None` deletes a row instead of marking it dispatched,
    /// which is cheaper on PostgreSQL.
    pub dispatched: Option<Duration>,
    /// Dead letters that were skipped, or whose replay was dispatched; default `None`: for ever.
    pub resolved: Option<Duration>,
    /// Failed attempts of rows that are dispatched, resolved or gone; default 30 days. `None`: for ever.
    pub history: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { dispatched: Some(7 * DAY), resolved: None, history: Some(30 * DAY) }
    }
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            name: default_name(),
            batch_size: 100,
            concurrency: 32,
            lease: Duration::from_secs(30),
            handler_timeout: Duration::from_secs(30),
            poll_min: Duration::from_millis(50),
            poll_max: Duration::from_secs(1),
            shutdown_timeout: Duration::from_secs(20),
            retry: RetryPolicy::default(),
            circuit: CircuitPolicy::default(),
            retention: Retention::default(),
        }
    }
}

/// Tells relays of one process apart.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

fn default_name() -> String {
    let host = std::env::var("HOSTNAME").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let host = host.unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("relay");
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    let (host, random) = (host.chars().take(100).collect::<String>(), fastrand::u16(..));
    format!("{host}:{}:{number}:{random:04x}", std::process::id())
}

/// Everything that is wrong with a [`RelayConfig`].
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError(Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the relay's configuration cannot work:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

/// As its text: this is what a `main` that returns it prints.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigError {}

const DAY: Duration = Duration::from_hours(24);

impl RelayConfig {
    /// Checks every field and their relations.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, at once.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let rules = [
            (
                (1..=200).contains(&self.name.len()) && !self.name.contains('\0'),
                format!("name must have 1 to 200 bytes and no NUL, it has {}", self.name.len()),
            ),
            (
                (1..=1_000).contains(&self.batch_size),
                format!("batch_size must be 1 to 1000, it is {}", self.batch_size),
            ),
            (
                (1..=10_000).contains(&self.concurrency),
                format!("concurrency must be 1 to 10000, it is {}", self.concurrency),
            ),
            (
                (Duration::from_millis(100)..=DAY).contains(&self.lease),
                format!("lease must be 100 ms to 24 h, it is {:?}", self.lease),
            ),
            (
                !self.handler_timeout.is_zero() && self.handler_timeout <= DAY,
                format!(
                    "handler_timeout must be more than zero and at most 24 h, it is {:?}",
                    self.handler_timeout
                ),
            ),
            (
                (Duration::from_millis(1)..=self.poll_max).contains(&self.poll_min) && self.poll_max <= DAY,
                format!(
                    "poll_min ({:?}) must be at least 1 ms and at most poll_max ({:?}), which may be 24 h",
                    self.poll_min, self.poll_max
                ),
            ),
            (
                self.shutdown_timeout <= DAY,
                format!("shutdown_timeout must be at most 24 h, it is {:?}", self.shutdown_timeout),
            ),
            (
                (1..=1_000_000).contains(&self.retry.max_attempts),
                format!("retry.max_attempts must be 1 to 1000000, it is {}", self.retry.max_attempts),
            ),
            (
                self.retry.cap <= 30 * DAY,
                format!("retry.cap must be at most 30 days, it is {:?}", self.retry.cap),
            ),
            (
                (Duration::from_millis(1)..=self.circuit.cap).contains(&self.circuit.base)
                    && self.circuit.cap <= Duration::from_hours(1),
                format!(
                    "circuit.base ({:?}) must be at least 1 ms and at most circuit.cap ({:?}), which may be 1 h",
                    self.circuit.base, self.circuit.cap
                ),
            ),
            (
                self.retention.ages().all(|age| age <= 36_500 * DAY),
                "retention must be at most 100 years; use None to keep for ever".to_owned(),
            ),
        ];
        let problems: Vec<_> =
            rules.into_iter().filter(|(holds, _)| !holds).map(|(_, problem)| problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(ConfigError(problems)) }
    }
}

impl Retention {
    fn ages(&self) -> impl Iterator<Item = Duration> {
        [self.dispatched, self.resolved, self.history].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(RelayConfig::default().validate(), Ok(()));
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let config = RelayConfig {
            name: String::new(),
            batch_size: 0,
            concurrency: 0,
            lease: Duration::from_millis(1),
            handler_timeout: Duration::ZERO,
            poll_min: Duration::from_secs(2),
            shutdown_timeout: Duration::MAX,
            retry: RetryPolicy { max_attempts: 0, cap: Duration::MAX, ..RetryPolicy::default() },
            circuit: CircuitPolicy { base: Duration::ZERO, ..CircuitPolicy::default() },
            retention: Retention { history: Some(Duration::MAX), ..Retention::default() },
            ..RelayConfig::default()
        };
        let ConfigError(problems) = config.validate().unwrap_err();
        assert_eq!(problems.len(), 11, "{problems:#?}");
    }
}

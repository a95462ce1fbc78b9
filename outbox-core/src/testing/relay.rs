//! A relay in the hands of a test.

use super::{
    Drained, FaultPoint, Inspect, Stored,
    fault::{Faults, Watched, watched},
};
use crate::{
    relay::{PassReport, Relay, RelayConfig},
    router::Router,
    row::OutboxRow,
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{fmt, sync::Arc, time::Duration};
use tokio::{
    task::yield_now,
    time::{Instant, timeout},
};

/// Passes that a drain makes at most.
const MAX_PASSES: u32 = 10_000;
/// Passes in a row after which a drain gives up rows that only wait.
const MAX_WAITS: u32 = 20;
/// How long what a crashed pass had begun may take to be gone.
const CRASH_PATIENCE: Duration = Duration::from_secs(1);

/// Makes the passes of a relay one by one, at a time that the test moves, and crashes where the test wants.
///
/// Its clock goes on by itself as well, and ahead by what [`advance`](Self::advance) and [`drain`](Self::drain) add: backoff,
/// due times and leases pass without waiting. Handlers live in the time of everybody else: `handler_timeout` is real (or
/// tokio's, where the test has paused that).
///
/// Everything else is a relay's own work, with a new relay for each pass: circuits are forgotten in between, and nothing is
/// purged.
pub struct TestRelay<S> {
    store: Arc<S>,
    router: Router,
    config: RelayConfig,
    started: (DateTime<Utc>, Instant),
    ahead: TimeDelta,
    faults: Arc<Faults>,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It ended, and did this.
    Done(PassReport),
    /// It crashed at the place that was armed.
    Crashed,
}

impl<S: Inspect> TestRelay<S> {
    /// A relay with the default [`RelayConfig`].
    pub fn new(store: S, router: Router) -> Self {
        Self {
            store: Arc::new(store),
            router,
            config: RelayConfig::default(),
            started: (Utc::now(), Instant::now()),
            ahead: TimeDelta::zero(),
            faults: Arc::default(),
        }
    }

    /// Replaces the configuration.
    #[must_use]
    pub fn with_config(mut self, config: RelayConfig) -> Self {
        self.config = config;
        self
    }

    /// The store that it works on.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The time of the next pass.
    pub fn now(&self) -> DateTime<Utc> {
        self.started.0 + self.started.1.elapsed() + self.ahead
    }

    /// Puts the clock forward; by a thousand years in all, because the times of a database end.
    pub fn advance(&mut self, by: Duration) {
        const MOST: TimeDelta = TimeDelta::days(365 * 1_000);
        let by = TimeDelta::from_std(by).unwrap_or(MOST).min(MOST);
        self.ahead = (self.ahead + by).min(MOST);
    }

    /// The next pass that comes to this place ends there, as if its process had died: nothing is finished, given back or
    /// told. Once; the passes after it are as ever, and find what was left behind when its leases have expired.
    pub fn crash_at(&mut self, point: FaultPoint) {
        self.faults.arm(Some(point));
    }

    /// Makes one pass, as [`Relay::pass`] does.
    ///
    /// # Panics
    ///
    /// When the relay cannot start or the store fails.
    pub async fn pass(&mut self) -> Passed {
        // What a pass has begun holds this, wherever it runs.
        let faults = self.faults.clone();
        let alive = Arc::new(());
        let router = self.router.with_handlers(|run| {
            let (run, alive) = (watched(run, faults.clone()), alive.clone());
            Arc::new(move |call| {
                let _ = &alive;
                run(call)
            })
        });
        let store = Watched { store: self.store.clone(), faults: self.faults.clone() };
        let relay = Relay::new(store, router).with_config(self.config.clone());
        let passed = tokio::select! {
            biased;
            () = self.faults.crashed() => Passed::Crashed,
            report = relay.pass_at(Some(self.now())) => match report {
                Ok(report) => Passed::Done(report),
                Err(error) => panic!("the pass of a test relay failed: {error}"),
            },
        };
        drop(relay);
        let all_gone = async {
            while Arc::strong_count(&alive) > 1 {
                yield_now().await;
            }
        };
        // A handler that blocks its thread cannot be cut off.
        drop(timeout(CRASH_PATIENCE, all_gone).await);
        passed
    }

    /// Makes passes until nothing is left to do, and puts the clock forward whenever nothing is due: to the next retry, the
    /// next due row, the end of the next lease. A crash is followed by the next pass, as a supervisor would do it.
    ///
    /// It ends when every row is dispatched, dead, or beyond this router; when rows have only waited for a while, for what is
    /// unavailable or paused; and after 10,000 passes. What is left then is in what it returns.
    ///
    /// # Panics
    ///
    /// As [`pass`](Self::pass).
    pub async fn drain(&mut self) -> Drained {
        let (mut passes, mut crashes, mut waits) = (0, 0, 0);
        let mut sum = PassReport::default();
        loop {
            passes += 1;
            let claimed = match self.pass().await {
                Passed::Crashed => {
                    crashes += 1;
                    true
                }
                Passed::Done(report) => {
                    sum.add(&report);
                    let finished = report.dispatched + report.dead + report.retried;
                    waits = if finished > 0 { 0 } else { waits + u32::from(report.waiting > 0) };
                    report.claimed + report.dead > 0
                }
            };
            let rows = Stored::of(&*self.store).await;
            let next = if claimed { None } else { self.next_due(rows.rows()) };
            if let Some(due) = next {
                self.ahead += due - self.now();
            }
            let is_over = (!claimed && next.is_none()) || waits == MAX_WAITS || passes == MAX_PASSES;
            if is_over {
                let left = rows.rows().iter().filter(|row| is_owed(row)).cloned().collect();
                return Drained { passes, crashes, report: sum, left: Stored::new(left) };
            }
        }
    }

    /// When the next row becomes due, or the next lease expires.
    fn next_due(&self, rows: &[OutboxRow]) -> Option<DateTime<Utc>> {
        let now = self.now();
        let live = rows.iter().filter(|row| row.finished_at.is_none());
        let due = live.map(|row| row.lease.as_ref().map_or(row.available_at, |lease| lease.expires_at));
        due.filter(|due| *due > now).min()
    }
}

fn is_owed(row: &OutboxRow) -> bool {
    row.finished_at.is_none() || (row.last_error.is_some() && row.resolved_at.is_none())
}

impl<S> fmt::Debug for TestRelay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestRelay")
            .field("router", &self.router)
            .field("config", &self.config)
            .field("ahead", &self.ahead)
            .finish_non_exhaustive()
    }
}

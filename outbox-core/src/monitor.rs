//! Reads the [`Signals`] now and then, and says when rows are late.

use crate::{
    panics::caught,
    store::{OutboxOperator, PATIENCE, Signals, StoreError, answered},
};
use std::{fmt, future::Future, pin::pin, time::Duration};
use tokio::time::interval;

type OnSignals = Box<dyn Fn(&Signals) + Send + Sync>;
type OnLag = Box<dyn Fn(&Signals, Lag) + Send + Sync>;
type OnFailure = Box<dyn Fn(&StoreError) + Send + Sync>;

/// Watches an outbox, beside its relays; one for each outbox is enough, and more do no harm.
///
/// ```no_run
/// # async fn run(store: impl outbox_core::store::OutboxOperator) {
/// use outbox_core::{Lag, Monitor};
/// use std::time::Duration;
///
/// let monitor = Monitor::new(store)
///     .on_lag(Duration::from_secs(60), |signals, lag| match lag {
///         Lag::Late => eprintln!("rows have waited for {:?}", signals.lag()),
///         Lag::InTime => eprintln!("in time again"),
///     });
/// monitor.run(std::future::pending()).await;
/// # }
/// ```
pub struct Monitor<S> {
    store: S,
    every: Duration,
    on_signals: Vec<OnSignals>,
    on_lag: Vec<(Duration, OnLag)>,
    on_failure: Vec<OnFailure>,
}

/// Whether rows are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// The [lag](Signals::lag) has passed the limit.
    Late,
    /// It is within the limit again.
    InTime,
}

impl<S: OutboxOperator> Monitor<S> {
    /// A monitor that looks every 15 s.
    pub fn new(store: S) -> Self {
        let (on_signals, on_lag, on_failure) = (Vec::new(), Vec::new(), Vec::new());
        Self { store, every: Duration::from_secs(15), on_signals, on_lag, on_failure }
    }

    /// The time between two looks; 100 ms to a day.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every.clamp(Duration::from_millis(100), Duration::from_hours(24));
        self
    }

    /// Calls a function with every look.
    #[must_use]
    pub fn on_signals(mut self, hook: impl Fn(&Signals) + Send + Sync + 'static) -> Self {
        self.on_signals.push(Box::new(hook));
        self
    }

    /// Calls a function when the [lag](Signals::lag) passes a limit, and once more when it is within it again. It is not
    /// called for a lag that never passed the limit.
    #[must_use]
    pub fn on_lag(mut self, limit: Duration, hook: impl Fn(&Signals, Lag) + Send + Sync + 'static) -> Self {
        self.on_lag.push((limit, Box::new(hook)));
        self
    }

    /// Calls a function when a look fails: nobody knows then whether rows are late. Failures are logged as well.
    #[must_use]
    pub fn on_failure(mut self, hook: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        self.on_failure.push(Box::new(hook));
        self
    }

    /// Looks until `shutdown` is ready. A look that fails or hangs is logged, and the next one comes in its time.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends it.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut late = vec![false; self.on_lag.len()];
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                _ = ticks.tick() => {}
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                () = self.look(&mut late) => {}
            }
        }
    }

    async fn look(&self, late: &mut [bool]) {
        match answered(PATIENCE, self.store.signals(None)).await {
            Ok(signals) => self.tell(&signals, late),
            Err(error) => {
                tracing::error!(%error, "the outbox cannot be watched; the monitor tries again");
                self.on_failure.iter().for_each(|hook| guarded(|| hook(&error)));
            }
        }
    }

    fn tell(&self, signals: &Signals, late: &mut [bool]) {
        self.on_signals.iter().for_each(|hook| guarded(|| hook(signals)));
        for ((limit, hook), late) in self.on_lag.iter().zip(late) {
            let is_late = signals.lag() > *limit;
            if is_late != *late {
                *late = is_late;
                let lag = if is_late { Lag::Late } else { Lag::InTime };
                guarded(|| hook(signals, lag));
            }
        }
    }
}

/// A hook that panics does not end the monitor.
fn guarded(hook: impl FnOnce()) {
    if caught(hook).is_err() {
        tracing::error!("a hook of the outbox monitor panicked; the monitor goes on");
    }
}

impl<S: fmt::Debug> fmt::Debug for Monitor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("store", &self.store)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

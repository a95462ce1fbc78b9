//! The relay: claims committed rows, hands them to the router, writes what came of them.
//!
//! Any number of relays may work on one table, in any number of processes. One turn is a *pass*: claim a batch, run
//! its handlers, write the marks. [`Relay::run`] overlaps passes (it claims again while handlers still run);
//! [`Relay::pass`] makes one and ends.

mod config;
mod engine;
mod expired;
mod health;
mod hunger;
mod in_flight;
mod keeper;
mod leases;
mod log;
mod marks;
mod order;
mod outage;
mod pace;
mod report;
mod shutdown;

pub use config::{ConfigError, RelayConfig, Retention};
pub use health::{HealthStatus, RelayHealth};
pub use report::PassReport;

use crate::{
    observe::{Observed, Observers, RowEnd},
    router::{Gates, Router},
    row::DeadLetter,
    store::{OutboxStore, StoreError},
    wake::Commits,
};
use chrono::{DateTime, Utc};
use engine::{Engine, Event};
use keeper::Keeper;
use leases::Leases;
use outage::Outage;
use pace::Pace;
use shutdown::Shutdown;
use std::{
    collections::BTreeSet,
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::watch;

/// Moves rows from the outbox to their handlers.
///
/// ```no_run
/// # async fn run(store: impl outbox_core::OutboxStore) -> Result<(), Box<dyn std::error::Error>> {
/// use outbox_core::{Relay, Router};
///
/// let router = Router::builder().discover().build()?;
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let relay = Relay::new(store, router);
/// relay.run(async move { drop(stopped.await) }).await?;
/// # let _ = stop;
/// # Ok(())
/// # }
/// ```
pub struct Relay<S> {
    store: Arc<S>,
    router: Router,
    config: RelayConfig,
    health: RelayHealth,
    observers: Observers,
}

/// Why a relay did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store is not ready: unreachable, or its tables are missing or older than this version.
    #[error("the relay cannot start: {0}")]
    Store(#[from] StoreError),
}

impl<S: OutboxStore> Relay<S> {
    /// A relay with the default [`RelayConfig`].
    pub fn new(store: S, router: Router) -> Self {
        let (config, health) = (RelayConfig::default(), RelayHealth::default());
        Self { store: Arc::new(store), router, config, health, observers: Observers::default() }
    }

    /// Replaces the configuration; it is validated when the relay starts.
    #[must_use]
    pub fn with_config(mut self, config: RelayConfig) -> Self {
        self.config = config;
        self
    }

    /// Calls a function with whatever the relay [does](crate::observe). May be called several times.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&Observed<'_>) + Send + Sync + 'static) -> Self {
        self.observers.add(observer);
        self
    }

    /// Calls a function when a row died, once that is written: somebody has to decide what becomes of it. After a crash
    /// between the write and the call it is not called, so look at the dead letters in the [signals] as well.
    ///
    /// [signals]: crate::store::Signals
    #[must_use]
    pub fn on_dead(self, hook: impl Fn(&DeadLetter) + Send + Sync + 'static) -> Self {
        self.observe(move |observed| {
            if let Observed::Ended(RowEnd::Dead(letter)) = observed {
                hook(letter);
            }
        })
    }

    /// The store that it works on.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Tells whether it works, from anywhere and at any time; keep it before the relay is moved into its task.
    pub fn health(&self) -> RelayHealth {
        self.health.clone()
    }

    /// Works until `shutdown` is ready, then stops: no new claims, running handlers get
    /// [`shutdown_timeout`](RelayConfig::shutdown_timeout), rows that were not started are given back with their
    /// attempt, and everything that is known is written. It can be run again afterwards.
    ///
    /// While the database is away it tries again, at most once a second and at least every few seconds, and carries on by
    /// itself. Beside the claims it renews the leases of rows that run, follows pauses, warns of relays with other
    /// handlers, and purges.
    ///
    /// # Errors
    ///
    /// Only at the start: an invalid configuration, or a store that is unreachable or not migrated.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts running handlers; their rows come back when their leases expire. Prefer `shutdown`.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> Result<(), RelayError> {
        let keeper = self.start(None).await?;
        keeper.announce().await?;
        let _started = self.health.started();
        let (stop, stopped) = watch::channel(false);
        let work = async {
            self.work(&keeper, shutdown).await;
            stop.send_replace(true);
            // What the keeper is writing is finished, unless the database does not answer.
            tokio::time::sleep(KEEPER_PATIENCE).await;
        };
        tokio::select! {
            // Boxed, so that whoever runs a relay need not carry all of it in a future of their own.
            () = Box::pin(keeper.run(stopped)) => {}
            () = work => {}
        }
        Ok(())
    }

    async fn work(&self, keeper: &Keeper<S>, shutdown: impl Future<Output = ()>) {
        let mut engine = Engine::beside(keeper);
        let mut pace = Pace::new(&self.config);
        let mut commits = Commits::subscribe();
        let signal = pin!(shutdown);
        let mut shutdown = Shutdown::new(signal, self.config.shutdown_timeout);
        loop {
            let event = tokio::select! {
                biased;
                _ = shutdown.signalled() => break,
                event = engine.next_event(pace.next(&mut commits)) => event,
            };
            self.health.busy(true);
            tokio::select! {
                biased;
                () = handle(&mut engine, &mut pace, event) => {}
                // A database that does not answer must not hold up the stop.
                () = shutdown.overdue() => break,
            }
            self.health.busy(false);
        }
        engine.stop(shutdown.signalled().await).await;
    }

    /// Makes one pass and ends: takes over one row with an expired lease if there is one and runs it alone, and claims one
    /// batch, runs it to the end and writes the marks. (An ordered row is taken over after the batch.)
    ///
    /// For tests, and for callers with a schedule of their own.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); and the store's error when it fails within the pass. What was claimed then comes back
    /// when its lease expires.
    pub async fn pass(&self) -> Result<PassReport, RelayError> {
        self.pass_at(None).await
    }

    /// As [`pass`](Self::pass), at a pinned time instead of the database's.
    ///
    /// # Errors
    ///
    /// As [`pass`](Self::pass).
    pub async fn pass_at(&self, now: Option<DateTime<Utc>>) -> Result<PassReport, RelayError> {
        let keeper = self.start(now).await?;
        let mut engine = Engine::beside(&keeper);
        let (_stop, stopped) = watch::channel(false);
        tokio::select! {
            report = engine.one_pass() => Ok(report?),
            () = keeper.renew_leases(stopped) => unreachable!("nobody stops it"),
        }
    }

    /// Checks everything, and knows what is paused before anything is claimed.
    async fn start(&self, now: Option<DateTime<Utc>>) -> Result<Keeper<S>, RelayError> {
        self.config.validate()?;
        self.store.check().await?;
        if self.router.routes().is_empty() {
            tracing::warn!(
                "the router has no handlers, so this relay claims nothing; call .discover() or .on(...)"
            );
        }
        let keeper = Keeper {
            store: self.store.clone(),
            router: self.router.clone(),
            config: self.config.clone(),
            leases: Leases::new(self.config.lease),
            gates: Gates::new(self.config.circuit),
            outage: Outage::default(),
            health: self.health.clone(),
            observers: self.observers.clone(),
            now,
            differences: Mutex::new(BTreeSet::new()),
        };
        keeper.read_control().await?;
        Ok(keeper)
    }
}

/// How long a stopped relay waits for what goes on beside its claims.
const KEEPER_PATIENCE: Duration = Duration::from_secs(5);

async fn handle<S: OutboxStore>(engine: &mut Engine<S>, pace: &mut Pace, event: Event) {
    match event {
        Event::Ended(ended) => engine.settle(ended),
        Event::Written(written) => {
            // What was held up by the rows that are marked now need not wait for the next look.
            if engine.written(written) {
                pace.hurry();
            }
        }
        Event::FlushDue => engine.flush(),
        Event::LookDue => engine.look_for_expired().await,
        Event::ClaimDue => pace.after(engine.claim().await),
    }
    if engine.must_flush() {
        engine.flush();
    }
}

impl<S> fmt::Debug for Relay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("router", &self.router)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

//! What a relay does, told to whoever wants to know: alerts, metrics, tests.
//!
//! An observer is a function. It is called on the relay's own task, so it must be quick and must not wait; one that
//! panics is logged, and the relay goes on. Nothing that it is given shows a payload unless it asks for it.
//!
//! ```
//! use outbox_core::{Relay, Router, observe::Observed};
//! # fn build(store: impl outbox_core::OutboxStore) -> Result<(), Box<dyn std::error::Error>> {
//! let relay = Relay::new(store, Router::builder().discover().build()?)
//!     .on_dead(|letter| eprintln!("page somebody: {letter}"))
//!     .observe(|observed| {
//!         if let Observed::Handled { handler, took, .. } = observed {
//!             println!("{handler} took {took:?}");
//!         }
//!     });
//! # let _ = relay;
//! # Ok(())
//! # }
//! ```

use crate::{
    decide::{AttemptOutcome, Transition},
    panics::caught,
    row::{ClaimedRow, DeadLetter, ErrorClass, UnreadableRow},
    store::StoreError,
};
use chrono::Utc;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Something that happened in a relay.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Observed<'a> {
    /// Rows were claimed, or taken over from an expired lease; perhaps none.
    Claimed {
        /// How many.
        rows: u64,
        /// How long it took to ask.
        took: Duration,
    },
    /// A handler ended, once for each handler and attempt; whatever it did may be undone by the end of its lease.
    Handled {
        /// Its id.
        handler: &'a str,
        /// The row.
        row: &'a ClaimedRow,
        /// How long it ran.
        took: Duration,
        /// What came of it.
        result: Result<(), ErrorClass>,
    },
    /// The end of an attempt is written.
    Ended(&'a RowEnd),
    /// Leases were lost before their rows could be marked: another relay owns or has finished the rows.
    LeasesLost {
        /// How many.
        rows: u64,
    },
    /// The database failed; the relay tries again.
    StoreFailed {
        /// What the relay was about to do.
        doing: &'static str,
        /// Why it could not.
        error: &'a StoreError,
    },
}

/// How an attempt ended, once that is written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RowEnd {
    /// All handlers have succeeded.
    Dispatched {
        /// `orders.order-placed.v2`.
        logical_name: String,
        /// Time since the event was raised, by the clocks of the applications; zero where they disagree.
        age: Duration,
    },
    /// The row is tried again later.
    Retried {
        /// The event, unless the row could not be read.
        logical_name: Option<String>,
        /// Why.
        class: ErrorClass,
    },
    /// The row waits with its attempt given back: what a handler needs is down, or it is paused.
    Waits {
        /// The event.
        logical_name: String,
        /// Why.
        class: ErrorClass,
    },
    /// The row is a dead letter and waits for an operator.
    Dead(DeadLetter),
    /// The row was given back unstarted.
    Released {
        /// The event.
        logical_name: String,
    },
}

impl RowEnd {
    pub(crate) fn of(row: &ClaimedRow, transition: &Transition) -> Self {
        let logical_name = row.envelope.logical_name();
        match transition {
            Transition::Dispatched | Transition::Deleted => {
                let age = (Utc::now() - row.envelope.occurred_at).to_std().unwrap_or_default();
                Self::Dispatched { logical_name, age }
            }
            Transition::Retry { outcome, .. } => {
                Self::Retried { logical_name: Some(logical_name), class: why(outcome).0 }
            }
            Transition::Wait { outcome, .. } => Self::Waits { logical_name, class: why(outcome).0 },
            Transition::Dead(outcome) => {
                let (class, error) = why(outcome);
                Self::Dead(DeadLetter::of(row, class, error))
            }
            Transition::Release => Self::Released { logical_name },
        }
    }

    pub(crate) fn of_unreadable(row: &UnreadableRow, transition: &Transition) -> Self {
        match transition {
            Transition::Dead(_) => Self::Dead(DeadLetter::unreadable(row)),
            _ => Self::Retried { logical_name: None, class: ErrorClass::Unreadable },
        }
    }
}

fn why(outcome: &AttemptOutcome) -> (ErrorClass, &str) {
    let (class, error) = outcome.why();
    (class.unwrap_or(ErrorClass::Terminal), error)
}

type Observer = Arc<dyn Fn(&Observed<'_>) + Send + Sync>;

/// All observers of a relay.
#[derive(Clone, Default)]
pub(crate) struct Observers(Arc<Vec<Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Fn(&Observed<'_>) + Send + Sync + 'static) {
        Arc::make_mut(&mut self.0).push(Arc::new(observer));
    }

    /// Whether nobody listens, so that nothing need be put together.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn tell(&self, observed: &Observed<'_>) {
        for observer in self.0.iter() {
            if caught(|| observer(observed)).is_err() {
                tracing::error!("an observer of the relay panicked; the relay goes on");
            }
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Events that this process has written into outboxes so far, for a comparison with those that are dispatched. Where a
/// save joined a transaction of the caller's which then rolled back, its events are counted all the same.
pub fn written_events() -> u64 {
    WRITTEN.load(Ordering::Relaxed)
}

/// Counts written events. For stores.
pub fn count_written(events: usize) {
    WRITTEN.fetch_add(events as u64, Ordering::Relaxed);
}

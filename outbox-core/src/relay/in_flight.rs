//! Claimed rows whose handlers run or wait for a slot.

use super::{config::RelayConfig, leases::Leases};
use crate::{
    backoff::RetryPolicy,
    decide::{Failure, HandlerReport, Transition, decide},
    handler::Hold,
    observe::Observers,
    router::{Gates, Reports, Router},
    row::{ClaimedRow, ErrorClass, LeaseToken},
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch},
    task::{Id, JoinSet},
    time::{sleep, timeout, timeout_at},
};

/// How long a cut-off task may take to be gone.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);

/// How many rows are few enough for the loop to be woken by each that ends, and how long it rests otherwise.
const FEW: usize = 8;
const REST: Duration = Duration::from_millis(1);

/// How the handling of a row ended.
pub(crate) struct Ended {
    pub(crate) row: Arc<ClaimedRow>,
    pub(crate) token: LeaseToken,
    pub(crate) ending: Ending,
}

pub(crate) enum Ending {
    /// Its handlers ran, or were cut off.
    Reported(Vec<HandlerReport>),
    /// It never started: the relay stops, no slot became free while its lease had time for a handler, or the row before
    /// it of the same ordering key was not dispatched.
    NotStarted,
    /// It never started, because its lease ended while it waited for a slot.
    TooLate,
}

enum TaskEnd {
    Ran,
    /// It panicked outside the guard of its handlers, or was aborted.
    Broken,
    NotStarted,
    TooLate,
}

struct Tracked {
    row: Arc<ClaimedRow>,
    token: LeaseToken,
    reports: Reports,
}

/// The rows of a relay, one task each, with a bound on how many run at once.
pub(crate) struct InFlight {
    tasks: JoinSet<TaskEnd>,
    tracked: HashMap<Id, Tracked>,
    /// Whether nothing was ready after the last rest, so that the next one that ends is waited for.
    has_rested: bool,
    slots: Arc<Semaphore>,
    concurrency: usize,
    handler_timeout: Duration,
    lease: Duration,
    leases: Leases,
    gates: Gates,
    observers: Observers,
    retry: RetryPolicy,
    is_closed: watch::Sender<bool>,
}

/// The place of a row among the rows of its ordering key.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Tells when the row before it was dispatched; dropped when it was not.
    pub(crate) previous: Option<oneshot::Receiver<()>>,
    /// The same for the row behind it.
    pub(crate) next: Option<oneshot::Sender<()>>,
}

impl InFlight {
    pub(crate) fn new(config: &RelayConfig, leases: Leases, gates: Gates, observers: Observers) -> Self {
        Self {
            tasks: JoinSet::new(),
            tracked: HashMap::new(),
            has_rested: false,
            slots: Arc::new(Semaphore::new(config.concurrency)),
            concurrency: config.concurrency,
            handler_timeout: config.handler_timeout,
            lease: config.lease,
            leases,
            gates,
            observers,
            retry: config.retry,
            is_closed: watch::Sender::new(false),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tracked.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tracked.is_empty()
    }

    /// Whether handlers wait for rows: none is running.
    pub(crate) fn is_starved(&self) -> bool {
        self.slots.available_permits() == self.concurrency
    }

    /// Queues a claimed row. `lease_ends` is by the monotonic clock, counted from before the claim was sent.
    pub(crate) fn start(
        &mut self,
        router: &Router,
        row: ClaimedRow,
        token: LeaseToken,
        lease_ends: Instant,
        place: Place,
    ) {
        let row = Arc::new(row);
        let reports = Reports::default();
        let (ends, lease_ends_watch) = watch::channel(lease_ends);
        let hold = Hold { token, lease_ends: lease_ends_watch, handler_timeout: self.handler_timeout };
        let latest = lease_ends.checked_sub(self.lease / 2).unwrap_or(lease_ends);
        let key = (row.id, token);
        let (leases, gates, observers) = (self.leases.clone(), self.gates.clone(), self.observers.clone());
        let tracked = Tracked { row: row.clone(), token, reports: reports.clone() };
        let (router, retry) = (router.clone(), self.retry);
        let turn = turn(place.previous, self.slots.clone(), self.is_closed.subscribe());
        let task = self.tasks.spawn(async move {
            // A row that has waited for half of its lease is given back while that is still possible.
            let Ok(Some(_slot)) = timeout_at(latest.into(), turn).await else {
                return TaskEnd::NotStarted;
            };
            if crate::clock::now() >= lease_ends {
                return TaskEnd::TooLate;
            }
            let _held = leases.hold(key, ends);
            router.dispatch(row.clone(), hold, (&gates, &observers), &reports).await;
            let is_done = || decide(&row, &reports.so_far(), &retry, 0.0) == Transition::Dispatched;
            if let Some(next) = place.next.filter(|_| is_done()) {
                // Nobody may be waiting any more.
                let _ = next.send(());
            }
            TaskEnd::Ran
        });
        self.tracked.insert(task.id(), tracked);
    }

    /// The next row that ended; never ready while there is none. Cancel safe.
    ///
    /// While many run it rests a millisecond after each time that none was ready, instead of being woken by each of them:
    /// their marks wait for company anyway.
    pub(crate) async fn next(&mut self) -> Ended {
        loop {
            let gone = match self.tasks.try_join_next_with_id() {
                None if self.tasks.is_empty() => std::future::pending().await,
                None if self.tracked.len() > FEW && !self.has_rested => {
                    sleep(REST).await;
                    self.has_rested = true;
                    continue;
                }
                None => self.tasks.join_next_with_id().await,
                gone => gone,
            };
            self.has_rested = false;
            let (id, end) = match gone {
                Some(Ok(end)) => end,
                Some(Err(error)) => (error.id(), TaskEnd::Broken),
                None => continue,
            };
            if let Some(tracked) = self.tracked.remove(&id) {
                return tracked.ended(&end);
            }
        }
    }

    /// No further row starts; those that wait come back as not started.
    pub(crate) fn close(&self) {
        self.slots.close();
        self.is_closed.send_replace(true);
    }

    /// Cuts off the running handlers. What they had finished before is kept.
    pub(crate) async fn interrupt(&mut self) -> Vec<Ended> {
        self.tasks.abort_all();
        let mut ended = Vec::new();
        let all_gone = async {
            while let Some(gone) = self.tasks.join_next_with_id().await {
                // One that could not be cut off has ended by itself, and its word counts.
                if let Ok((id, end)) = gone {
                    ended.extend(self.tracked.remove(&id).map(|tracked| tracked.ended(&end)));
                }
            }
        };
        // A handler that blocks its thread cannot be cut off; nobody waits for it.
        drop(timeout(ABORT_PATIENCE, all_gone).await);
        let interrupted = |tracked: Tracked| {
            let text = "the relay stopped before the handler ended";
            let mut failure = Failure::new(ErrorClass::Interrupted, text);
            // The interruption says nothing about the message, so it need not wait.
            failure.retry_after = Some(Duration::ZERO);
            tracked.reports.push(HandlerReport { handler: None, result: Err(failure) });
            tracked.ended(&TaskEnd::Ran)
        };
        ended.extend(self.tracked.drain().map(|(_, tracked)| interrupted(tracked)));
        ended
    }
}

/// Waits until a row may start: the row before it is dispatched, and a slot is free. `None` when that never comes.
async fn turn(
    previous: Option<oneshot::Receiver<()>>,
    slots: Arc<Semaphore>,
    mut is_closed: watch::Receiver<bool>,
) -> Option<OwnedSemaphorePermit> {
    let ready = async {
        if let Some(previous) = previous {
            previous.await.ok()?;
        }
        slots.acquire_owned().await.ok()
    };
    tokio::select! {
        biased;
        _ = is_closed.wait_for(|closed| *closed) => None,
        slot = ready => slot,
    }
}

impl Tracked {
    fn ended(self, end: &TaskEnd) -> Ended {
        let ending = match end {
            TaskEnd::Broken => {
                let failure = Failure::new(ErrorClass::Panic, "the task of the row ended without a report");
                self.reports.push(HandlerReport { handler: None, result: Err(failure) });
                Ending::Reported(self.reports.take())
            }
            TaskEnd::Ran => Ending::Reported(self.reports.take()),
            TaskEnd::NotStarted => Ending::NotStarted,
            TaskEnd::TooLate => Ending::TooLate,
        };
        Ended { row: self.row, token: self.token, ending }
    }
}

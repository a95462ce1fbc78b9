//! Marks that wait for company, and marks that are being written.
//!
//! They are written beside the loop: a row that somebody else has locked holds up its own marks and no claim.

use super::log::log_failure;
use crate::{
    observe::RowEnd,
    row::{DeadLetter, Status},
    store::{Mark, OutboxStore, StoreError, StoreErrorKind},
};
use chrono::{DateTime, Utc};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tracing::Instrument;

/// How long a mark waits for company.
const DELAY: Duration = Duration::from_millis(5);
/// Wait after marks could not be written.
const RETRY: Duration = Duration::from_millis(500);
/// How often a mark is sent that the database refuses for no reason that is known to pass.
const MAX_SENT: u32 = 5;
/// Writes at once; further marks wait until one of them has ended.
const MAX_WRITES: usize = 6;

/// A mark, and how often it was sent before: then nobody knows whether it was written.
struct Waiting {
    mark: Mark,
    sent: u32,
    /// Whether others of its key wait for it.
    of_key: bool,
    /// What observers are told once it is written.
    end: Option<RowEnd>,
}

/// The marks of a relay.
pub(crate) struct Marks<S> {
    store: Arc<S>,
    now: Option<DateTime<Utc>>,
    batch: usize,
    waiting: Vec<Waiting>,
    flush_at: Instant,
    writes: JoinSet<Written>,
}

/// What became of some marks.
#[derive(Default)]
pub(crate) struct Written {
    /// Rows whose lease was lost, and marks that the database refuses for good.
    pub(crate) lost: u64,
    /// Why some could not be written now; they are written again.
    pub(crate) error: Option<StoreError>,
    /// What was certainly written, for observers.
    pub(crate) ended: Vec<RowEnd>,
    /// Whether rows of keys were among them, so that their keys may go on.
    pub(crate) of_keys: bool,
    again: Vec<Waiting>,
}

impl<S: OutboxStore> Marks<S> {
    pub(crate) fn new(store: Arc<S>, batch: usize, now: Option<DateTime<Utc>>) -> Self {
        let (waiting, writes) = (Vec::new(), JoinSet::new());
        Self { store, now, batch, waiting, flush_at: Instant::now(), writes }
    }

    pub(crate) fn push(&mut self, mark: Mark, end: Option<RowEnd>, of_key: bool) {
        if self.waiting.is_empty() {
            self.flush_at = Instant::now() + DELAY;
        }
        self.waiting.push(Waiting { mark, sent: 0, of_key, end });
    }

    /// Marks that wait; those that are being written are not counted.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether everything is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.writes.is_empty()
    }

    pub(crate) fn is_writing(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Whether another write may begin beside those that run.
    pub(crate) fn may_write(&self) -> bool {
        self.writes.len() < MAX_WRITES
    }

    /// When the marks that wait are to be written.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty() && self.may_write()).then_some(self.flush_at)
    }

    /// Nothing is gained by waiting once there are two batches, or once no other row can end.
    pub(crate) fn must_write(&self, nothing_runs: bool) -> bool {
        let full = self.waiting.len() >= 2 * self.batch;
        let complete = nothing_runs && !self.waiting.is_empty();
        // Later than that it is a pause after a failure, which is kept.
        (full || complete) && self.may_write() && Instant::now() + DELAY >= self.flush_at
    }

    /// Puts the marks off for a while.
    pub(crate) fn later(&mut self) {
        self.flush_at = Instant::now() + RETRY;
    }

    /// Begins to write what waits.
    pub(crate) fn write(&mut self) {
        if !self.waiting.is_empty() {
            let (store, now) = (self.store.clone(), self.now);
            let marks = std::mem::take(&mut self.waiting);
            let span = tracing::debug_span!("outbox.mark", rows = marks.len());
            let of_keys = marks.iter().any(|waiting| waiting.of_key);
            let write = async move { Written { of_keys, ..written(&*store, marks, now).await } };
            self.writes.spawn(write.instrument(span));
        }
    }

    /// The next write that ended; never ready while there is none. What could not be written waits again. Cancel safe.
    pub(crate) async fn next_written(&mut self) -> Written {
        let mut written = match self.writes.join_next().await {
            Some(Ok(written)) => written,
            // A panic in the store: the leases free the rows.
            Some(Err(error)) => {
                tracing::error!(%error, "marks were not written; the rows are taken over when their leases expire");
                Written::default()
            }
            None => std::future::pending().await,
        };
        if !written.again.is_empty() {
            self.waiting.append(&mut written.again);
            self.later();
        }
        written
    }

    /// Writes everything, until a time. Returns how many marks are left.
    pub(crate) async fn write_all(&mut self, until: Instant) -> usize {
        let all = async {
            while !self.is_empty() {
                if self.may_write() {
                    self.write();
                }
                if self.next_written().await.error.is_some() {
                    tokio::time::sleep_until(self.flush_at).await;
                }
            }
        };
        if timeout_at(until, all).await.is_ok() { 0 } else { self.waiting.len().max(1) }
    }
}

async fn written<S: OutboxStore>(store: &S, marks: Vec<Waiting>, now: Option<DateTime<Utc>>) -> Written {
    let list: Vec<_> = marks.iter().map(|waiting| waiting.mark.clone()).collect();
    match store.mark(&list, now).await {
        Ok(report) => {
            // One that was sent before and finds its lease gone has probably been written then.
            let is_first = marks.iter().all(|waiting| waiting.sent == 0);
            if report.lost > 0 && !is_first {
                tracing::info!(
                    rows = report.lost,
                    "marks were sent before; whether they were written then is not known"
                );
            }
            let ended = ended(store, marks, report.lost).await;
            Written { lost: if is_first { report.lost } else { 0 }, ended, ..Written::default() }
        }
        // Every mark on its own: one that the database refuses must not keep the others from being written.
        Err(error) if !error.may_pass() && error.kind() != StoreErrorKind::Setup => {
            log_failure("mark", &error);
            each(store, marks, now).await
        }
        Err(error) => Written { error: Some(error), again: again(marks), ..Written::default() },
    }
}

/// What is to be told of marks of which so many were lost. Which ones is not known then, so only dead letters are looked
/// for: somebody may have to get up for them.
async fn ended<S: OutboxStore>(store: &S, marks: Vec<Waiting>, lost: u64) -> Vec<RowEnd> {
    let ends = marks.into_iter().filter_map(|waiting| waiting.end);
    if lost == 0 {
        return ends.collect();
    }
    let mut dead = Vec::new();
    for end in ends {
        let RowEnd::Dead(DeadLetter { message: Some(message), .. }) = &end else { continue };
        if let Ok(Some(row)) = store.find(message.message_id).await
            && row.status == Status::Dead
        {
            dead.push(end);
        }
    }
    dead
}

fn again(marks: Vec<Waiting>) -> Vec<Waiting> {
    marks.into_iter().map(|waiting| Waiting { sent: waiting.sent + 1, ..waiting }).collect()
}

/// Writes marks one by one and gives up those that the database goes on refusing: their leases expire, and the rows are
/// taken over one at a time.
async fn each<S: OutboxStore>(store: &S, marks: Vec<Waiting>, now: Option<DateTime<Utc>>) -> Written {
    let mut written = Written::default();
    let mut marks = marks.into_iter();
    while let Some(waiting) = marks.next() {
        let error = match store.mark(std::slice::from_ref(&waiting.mark), now).await {
            Ok(report) => {
                written.ended.extend(ended(store, vec![waiting], report.lost).await);
                continue;
            }
            Err(error) => error,
        };
        if error.may_pass() {
            written.again.extend(again(std::iter::once(waiting).chain(marks).collect()));
            written.error = Some(error);
            break;
        }
        if waiting.sent < MAX_SENT {
            written.again.extend(again(vec![waiting]));
            written.error = Some(error);
        } else {
            tracing::error!(id = waiting.mark.id.0, %error, "a mark is refused and given up; the row is taken over when its lease expires");
            written.lost += 1;
        }
    }
    written
}

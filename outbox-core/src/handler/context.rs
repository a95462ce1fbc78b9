//! What a handler can know of the message that it handles.

use crate::{
    cause::{self, Cause},
    envelope::{Envelope, MessageId},
    row::{ClaimedRow, LeaseToken},
};
use chrono::{DateTime, Utc};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// The message that is being handled, without its payload. Cheap to clone.
///
/// What a handler hands to other systems: [`message_id`](Self::message_id) as the idempotency key and
/// [`claims`](Self::claims) as the fencing number.
#[derive(Clone, Debug)]
pub struct MessageContext {
    row: Arc<ClaimedRow>,
    hold: Hold,
    deadline: Instant,
    cause: Arc<Cause>,
}

const CENTURY: Duration = Duration::from_hours(24 * 36_500);

/// Under which claim a row is ours, and until when by this process's monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) token: LeaseToken,
    /// End of the lease; it moves when the lease is renewed or lost.
    pub(crate) lease_ends: watch::Receiver<Instant>,
    /// The longest that one handler may take.
    pub(crate) handler_timeout: Duration,
}

impl MessageContext {
    pub(crate) fn new(row: Arc<ClaimedRow>, hold: Hold) -> Self {
        let deadline = crate::clock::now();
        let cause = Arc::new(row.envelope.cause());
        Self { row, hold, deadline, cause }.for_next_call()
    }

    pub(crate) fn cause(&self) -> &Arc<Cause> {
        &self.cause
    }

    /// The context of a call that starts now.
    pub(crate) fn for_next_call(mut self) -> Self {
        let now = crate::clock::now();
        // A century stands for a timeout that no clock can express.
        self.deadline = now.checked_add(self.hold.handler_timeout).unwrap_or(now + CENTURY);
        self
    }

    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    pub(crate) fn row(&self) -> &ClaimedRow {
        &self.row
    }

    fn envelope(&self) -> &Envelope {
        &self.row.envelope
    }

    /// Takes the message along into a task: what the future raises was caused by it, as if the handler itself had raised
    /// it (see [`Envelope`]).
    ///
    /// Within a handler there is nothing to do; a task that it spawns is on its own without this. The handler is done when
    /// it returns, whatever becomes of the task: what has to happen is awaited.
    ///
    /// ```
    /// use outbox_core::MessageContext;
    ///
    /// async fn index_both(cx: &MessageContext) -> Result<(), tokio::task::JoinError> {
    ///     let first = tokio::spawn(cx.scope(async { /* … raises events … */ }));
    ///     let second = tokio::spawn(cx.scope(async { /* … */ }));
    ///     first.await?;
    ///     second.await
    /// }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        cause::scope(self.cause.clone(), future)
    }

    /// As [`scope`](Self::scope), for work on another thread, such as in `spawn_blocking`.
    pub fn scope_sync<T>(&self, work: impl FnOnce() -> T) -> T {
        cause::within(&self.cause, work)
    }

    /// Identity of the message, the same in every delivery: the idempotency key.
    pub fn message_id(&self) -> MessageId {
        self.envelope().message_id
    }

    /// Stored name of the event, without its version.
    pub fn event_type(&self) -> &str {
        &self.envelope().event_type
    }

    /// Version under which the payload was stored.
    pub fn event_version(&self) -> u16 {
        self.envelope().event_version
    }

    /// Type of the aggregate that raised the event.
    pub fn aggregate_type(&self) -> Option<&str> {
        self.envelope().aggregate_type.as_deref()
    }

    /// Id of that aggregate.
    pub fn aggregate_id(&self) -> Option<&str> {
        self.envelope().aggregate_id.as_deref()
    }

    /// Version of that aggregate, where it has one; consumers see gaps by it.
    pub fn aggregate_version(&self) -> Option<i64> {
        self.envelope().aggregate_version
    }

    /// Which try this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.row.attempts
    }

    /// How often the row was ever claimed: grows with every owner, so a system that remembers the highest number
    /// it has seen can refuse a stale one.
    pub fn claims(&self) -> i64 {
        self.row.claims
    }

    /// The conversation that the message belongs to.
    pub fn correlation_id(&self) -> Option<&str> {
        self.envelope().correlation_id.as_deref()
    }

    /// The message that caused this one.
    pub fn causation_id(&self) -> Option<MessageId> {
        self.envelope().causation_id
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.envelope().headers.get(name).map(String::as_str)
    }

    /// When the event was raised, by the clock of the application that raised it.
    pub fn occurred_at(&self) -> DateTime<Utc> {
        self.envelope().occurred_at
    }

    /// When this call is cut off (`handler_timeout`): hand it on to whatever the handler waits for.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// When the lease of the row ends, as far as is known now: an effect that starts later may meet another owner's. The
    /// relay renews the lease while the handler runs; when it cannot, the call is cut off at this time.
    pub fn lease_ends(&self) -> Instant {
        *self.hold.lease_ends.borrow()
    }
}

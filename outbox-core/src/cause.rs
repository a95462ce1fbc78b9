//! Why an event is raised: the message that is being handled just then.
//!
//! The cause is a task-local. A router sets it around each handler, so it follows the handler's own awaits and nothing
//! else: a spawned task or another thread has none, unless [`MessageContext::scope`](crate::MessageContext::scope)
//! takes it there.

use crate::{envelope::MessageId, trace::TraceContext};
use std::{future::Future, sync::Arc};

/// The message that is being handled, as far as events that it causes need it.
#[derive(Debug)]
pub(crate) struct Cause {
    pub(crate) message_id: MessageId,
    /// The conversation that the message belongs to; it begins one when it belongs to none.
    pub(crate) correlation_id: String,
    pub(crate) trace: Option<TraceContext>,
}

tokio::task_local! {
    static CURRENT: Arc<Cause>;
}

/// Runs a part of a handler: what it raises was caused by its message.
pub(crate) fn within<T>(cause: &Arc<Cause>, work: impl FnOnce() -> T) -> T {
    CURRENT.sync_scope(cause.clone(), work)
}

/// As [`within`], for a future that somebody else polls.
pub(crate) fn scope<F: Future>(cause: Arc<Cause>, future: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(cause, future)
}

/// The message that is being handled here and now.
pub(crate) fn current() -> Option<Arc<Cause>> {
    CURRENT.try_with(Arc::clone).ok()
}

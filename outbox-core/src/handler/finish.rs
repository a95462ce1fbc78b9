//! What an argument of a handler does once the handler has succeeded, such as committing the transaction that it lent.

use super::{Call, HandlerError, HandlerFuture, Run};
use crate::row::{LeaseToken, RowId};
use std::{
    any::Any,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

/// The last step of a handler's call, registered by one of its arguments with [`Call::finish_with`].
///
/// It belongs to the call: the handler's time limit, the end of its lease and the guard against panics hold for it as
/// well, and only what it returns is reported. When the handler panics or is cut off, the step is dropped, so what it
/// holds must undo itself then, as a transaction does.
pub trait Finish: Any + Send + Sync {
    /// The handler has returned `Ok`, and its future and arguments are dropped. An error here is the handler's error.
    fn finish(self: Arc<Self>, handled: Handled) -> HandlerFuture;

    /// The handler has returned an error. Dropping is enough; this is for those that can undo better while they wait.
    fn undo(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { drop(self) })
    }
}

/// Which handler has handled which claimed row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handled {
    /// The row.
    pub row: RowId,
    /// The claim under which it was handled: whatever is written to the row names it.
    pub token: LeaseToken,
    /// Id of the handler.
    pub handler: Arc<str>,
}

/// Where the step of one call waits.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Mutex<Option<Arc<dyn Finish>>>>);

impl Slot {
    pub(super) fn get_or_make<F: Finish>(&self, make: impl FnOnce() -> F) -> Result<Arc<F>, HandlerError> {
        // `make` is the extractor's code and may panic; the slot is then as it was.
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there = slot.get_or_insert_with(|| Arc::new(make())).clone();
        let there: Arc<dyn Any + Send + Sync> = there;
        there.downcast::<F>().map_err(|_| {
            HandlerError::terminal(
                "two arguments of the handler want to finish it, and what each of them does could not be done as one: \
                 take only one of them",
            )
        })
    }

    fn take(&self) -> Option<Arc<dyn Finish>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}

/// Starts a handler and, when it has succeeded, the step that one of its arguments asked for.
///
/// Each time that it is started has a slot of its own: what a call that failed has begun is no part of the next one, also
/// where a layer around the handler makes several of one message.
pub(crate) fn started(run: &Run, call: &Call) -> Result<HandlerFuture, HandlerError> {
    let call = call.anew();
    let handler = run(&call)?;
    Ok(Box::pin(async move {
        let outcome = handler.await;
        let Some(step) = call.slot().take() else { return outcome };
        match outcome {
            Ok(()) => step.finish(call.handled()).await,
            Err(error) => {
                step.undo().await;
                Err(error)
            }
        }
    }))
}

//! Runs one handler so that neither a panic nor an endless wait leaves it.

use super::{Call, HandlerError, HandlerFuture};
use crate::{
    cause::{Cause, within},
    decide::Failure,
    panics,
    row::ErrorClass,
};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};
use tokio::{sync::watch, time::sleep_until};

/// A registered handler with its types erased: decodes, builds the arguments, starts the call.
pub(crate) type Run = dyn Fn(&Call) -> Result<HandlerFuture, HandlerError> + Send + Sync;

/// What came of one call.
pub(crate) type Outcome = Result<(), Failure>;

/// Calls a handler. Whatever of the user's code panics ends here: while it starts, runs or is dropped, and while its
/// error is written or dropped. So does the deadline. All of it runs within the message that it handles.
pub(crate) async fn guarded(run: &Run, call: Call) -> Outcome {
    let deadline = call.context().deadline();
    let mut lease_ends = call.context().hold().lease_ends.clone();
    if crate::clock::now() >= *lease_ends.borrow() {
        return Err(lease_ended("before the handler could start"));
    }
    let cause = call.context().cause().clone();
    let started = caught(|| within(&cause, || run(&call).map_err(HandlerError::into_failure)))?;
    drop(call);
    let mut future = CatchUnwind { future: Some(started?), cause };
    let ended = tokio::select! {
        biased;
        ended = &mut future => Ok(ended),
        () = sleep_until(deadline.into()) => Err(Failure::new(ErrorClass::Timeout, TIMED_OUT)),
        () = lease_over(&mut lease_ends) => Err(lease_ended("while the handler ran, so it was cut off")),
    };
    // The future is dropped where its panic can be caught, and only then is the attempt over.
    let CatchUnwind { future, cause } = future;
    let dropped = caught(|| within(&cause, || drop(future)));
    match ended {
        Ok(ended) => ended.and_then(|outcome| dropped.and(outcome)),
        Err(cut_off) => Err(cut_off),
    }
}

const TIMED_OUT: &str =
    "the handler did not end in time and was cut off; raise handler_timeout or make it faster";

fn lease_ended(when: &str) -> Failure {
    Failure::new(ErrorClass::LeaseExpired, &format!("the lease was lost or could not be renewed {when}"))
}

/// Ready when the lease has ended; a renewal moves the end.
async fn lease_over(lease_ends: &mut watch::Receiver<Instant>) {
    loop {
        let ends = *lease_ends.borrow_and_update();
        tokio::select! {
            () = sleep_until(ends.into()) => return,
            // The sender lives as long as the row is in flight; without it the end stands.
            Ok(()) = lease_ends.changed() => {}
        }
    }
}

/// Runs the user's code; a panic becomes a failure.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Failure> {
    panics::caught(run).map_err(|text| {
        let text = text.as_deref().unwrap_or("the handler panicked with a value that is no text");
        Failure::new(ErrorClass::Panic, text)
    })
}

struct CatchUnwind {
    future: Option<HandlerFuture>,
    cause: Arc<Cause>,
}

impl Future for CatchUnwind {
    /// Outer: whether it panicked. Inner: what it returned.
    type Output = Result<Outcome, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { future: Some(future), cause } = &mut *self else {
            return Poll::Pending;
        };
        let poll = || future.as_mut().poll(cx).map(|result| result.map_err(HandlerError::into_failure));
        let polled = caught(|| within(cause, poll));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

//! Runs one handler so that neither a panic nor an endless wait leaves it.

use super::{Call, HandlerError, HandlerFuture};
use crate::{decide::Failure, row::ErrorClass};
use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

/// A registered handler with its types erased: decodes, builds the arguments, starts the call.
pub(crate) type Run = dyn Fn(&Call) -> Result<HandlerFuture, HandlerError> + Send + Sync;

/// What came of one call.
pub(crate) type Outcome = Result<(), Failure>;

/// Calls a handler. Panics while starting, while polling and while dropping end here, and so does the deadline.
pub(crate) async fn guarded(run: &Run, call: Call) -> Outcome {
    let deadline = call.context().timing().deadline();
    let started = catch_unwind(AssertUnwindSafe(|| run(&call))).map_err(|panic| panicked(&*panic))?;
    drop(call);
    let mut future = CatchUnwind(Some(started.map_err(HandlerError::into_failure)?));
    let ended = tokio::time::timeout_at(deadline.into(), &mut future).await;
    // The future is dropped where its panic can be caught, and only then is the attempt over.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(future.0.take())));
    match (ended, dropped) {
        (Ok(Err(panic)), _) | (Ok(Ok(_)), Err(panic)) => Err(panicked(&*panic)),
        (Ok(Ok(result)), Ok(())) => result.map_err(HandlerError::into_failure),
        (Err(_), _) => Err(Failure::new(
            ErrorClass::Timeout,
            "the handler did not end in time and was cut off; raise handler_timeout or make it faster",
        )),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(ErrorClass::Panic, text.unwrap_or("the handler panicked with a value that is no text"))
}

struct CatchUnwind(Option<HandlerFuture>);

impl Future for CatchUnwind {
    type Output = Result<Result<(), HandlerError>, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = self.0.as_mut() else {
            return Poll::Pending;
        };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

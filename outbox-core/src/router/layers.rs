//! Middleware around handlers: layers of [tower](https://docs.rs/tower) (feature `tower`).

use super::{RouterBuilder, RouterError};
use crate::{
    handler::{Call, HandlerError, HandlerFuture, Run, Source, told},
    row::ErrorClass,
};
use std::{
    error::Error,
    fmt,
    future::{Future, poll_fn},
    iter::successors,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::Mutex;
use tower::{BoxError, Layer, Service, timeout::error::Elapsed};

/// Puts a layer around a handler.
type Wrap = Box<dyn Fn(Arc<Run>) -> Arc<Run> + Send + Sync>;

/// The layers of a router, in the order in which they were given.
#[derive(Default)]
pub(super) struct Layers(Vec<(Option<(String, Source)>, Wrap)>);

impl Layers {
    /// Puts the layers around a handler, the first inside.
    pub(super) fn around(&self, id: &str, run: Arc<Run>) -> Arc<Run> {
        let own = self.0.iter().filter(|(only, _)| only.as_ref().is_none_or(|(only, _)| only == id));
        own.fold(run, |run, (_, wrap)| wrap(run))
    }

    /// Layers for handlers that are not there.
    pub(super) fn errors(&self, is_there: impl Fn(&str) -> bool) -> impl Iterator<Item = RouterError> {
        let missing =
            self.0.iter().filter_map(|(only, _)| only.as_ref()).filter(move |(id, _)| !is_there(id));
        missing.map(|(id, source)| RouterError::NotLinked { id: id.clone(), source: *source })
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({})", self.0.len())
    }
}

impl RouterBuilder {
    /// Puts a layer around every handler of this router, also those that are registered later. Of several layers the one
    /// that is given last is outside.
    ///
    /// The layer is applied to each handler separately: `ConcurrencyLimitLayer::new(2)` lets two calls of each handler run;
    /// tower's `GlobalConcurrencyLimitLayer` counts all handlers together. Needs the feature `tower`.
    ///
    /// ```
    /// use outbox_core::Router;
    /// use std::time::Duration;
    /// use tower::timeout::TimeoutLayer;
    ///
    /// let router = Router::builder().layer(TimeoutLayer::new(Duration::from_secs(5))).discover().build()?;
    /// # let _ = router;
    /// # Ok::<(), outbox_core::RouterErrors>(())
    /// ```
    ///
    /// What the layered service answers is the handler's answer, within all that holds for a handler: the relay's
    /// `handler_timeout`, its lease, the guard against panics. A service that is not ready keeps the calls of its handler
    /// waiting. Its errors:
    ///
    /// | error | class |
    /// | --- | --- |
    /// | of the handler, as it is or as the source of another | as the handler said ([`CallError`]) |
    /// | tower's `Elapsed`, as it is or as the source of another | `timeout` |
    /// | any other, whether the service was not ready or failed | `transient` |
    ///
    /// A layer may call the handler several times for one message, as tower's `RetryLayer` does. Each of these calls has
    /// arguments of its own: a transaction that one of them was lent ends with it, and of all of them one commits.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<HandlerService> + Send + Sync + 'static,
        L::Service: Service<Call, Response = (), Error: Into<BoxError>, Future: Send> + Send + 'static,
    {
        self.layers.0.push((None, wrap(layer)));
        self
    }

    /// As [`layer`](Self::layer), around one handler.
    #[track_caller]
    pub fn layer_for<L>(mut self, id: &str, layer: L) -> Self
    where
        L: Layer<HandlerService> + Send + Sync + 'static,
        L::Service: Service<Call, Response = (), Error: Into<BoxError>, Future: Send> + Send + 'static,
    {
        self.layers.0.push((Some((id.to_owned(), Source::caller())), wrap(layer)));
        self
    }
}

fn wrap<L>(layer: L) -> Wrap
where
    L: Layer<HandlerService> + Send + Sync + 'static,
    L::Service: Service<Call, Response = (), Error: Into<BoxError>, Future: Send> + Send + 'static,
{
    Box::new(move |run| layered(layer.layer(HandlerService { run })))
}

/// A handler that calls a service. There is one service for all calls, as its limits are for all of them; while it is not
/// ready, they wait in turn.
fn layered<S>(service: S) -> Arc<Run>
where
    S: Service<Call, Response = (), Error: Into<BoxError>, Future: Send> + Send + 'static,
{
    let service = Arc::new(Mutex::new(service));
    Arc::new(move |call: &Call| {
        let (service, call) = (service.clone(), call.clone());
        Ok(Box::pin(async move {
            let answer = {
                let mut service = service.lock().await;
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(handler_error)?;
                service.call(call)
            };
            answer.await.map_err(handler_error)
        }))
    })
}

/// One handler of a router as a tower service: what layers are put around. Always ready.
#[derive(Clone)]
pub struct HandlerService {
    run: Arc<Run>,
}

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerService")
    }
}

impl Service<Call> for HandlerService {
    type Response = ();
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<(), CallError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let started: Result<HandlerFuture, _> = (self.run)(&call);
        Box::pin(async move { started.map_err(CallError)?.await.map_err(CallError) })
    }
}

/// A handler's error on its way through layers, where only a [`std::error::Error`] can go.
pub struct CallError(HandlerError);

impl CallError {
    /// What kind of failure it is: a layer that tries again leaves those alone that
    /// [are final](ErrorClass::is_final).
    pub fn class(&self) -> ErrorClass {
        self.0.class()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self.0.source()))
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source().source()
    }
}

/// Sources of an error that are looked at: an error may be among its own.
const MAX_SOURCES: usize = 100;

/// What a layered service's error is for the relay.
fn handler_error(error: impl Into<BoxError>) -> HandlerError {
    let error = match error.into().downcast::<CallError>() {
        Ok(own) => return own.0,
        Err(error) => error,
    };
    let first: &(dyn Error + 'static) = &*error;
    let model = successors(Some(first), |error| (*error).source()).take(MAX_SOURCES).find_map(|cause| {
        if cause.is::<Elapsed>() {
            return Some((ErrorClass::Timeout, None));
        }
        cause.downcast_ref().map(|CallError(own)| (own.class(), own.delay()))
    });
    match model {
        Some((class, delay)) => HandlerError::of_class(class, delay, error),
        None => HandlerError::transient(error),
    }
}

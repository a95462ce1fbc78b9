//! Code that handles an event: plain async functions with extractors, or structs.

mod context;
mod error;
mod extract;
mod finish;
mod guard;
mod registry;

pub use context::MessageContext;
pub use error::{HandlerError, ResultExt};
pub use extract::{Call, FromMessage, State};
pub use finish::{Finish, Handled};
pub use registry::{HandlerDescriptor, Source};

pub(crate) use context::Hold;
#[cfg(feature = "tower")]
pub(crate) use error::told;
pub use extract::Requirement;
pub(crate) use extract::States;
pub(crate) use finish::started;
pub(crate) use guard::{Run, guarded};
pub(crate) use registry::discovered;

use crate::event::OutboxEvent;
use std::{future::Future, pin::Pin};

/// A boxed handler call.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<(), HandlerError>> + Send + 'static>>;

/// Something that handles one type of event.
///
/// Implemented for functions `async fn(Event, A, B, …) -> Result<(), E>` with up to six further arguments that
/// implement [`FromMessage`], and for every [`EventHandler`]. `Args` only keeps these implementations apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of an outbox event",
    label = "not a handler",
    note = "a handler is `async fn(Event, ...) -> Result<(), E>`: the first argument is the event by value (it derives OutboxEvent), the others are `MessageContext`, `State<T>` or your own `FromMessage` type, `E` is any error, and the future is Send",
    note = "put `#[outbox_core::handler(id = \"...\")]` on the function to learn which part does not fit; it also allows arguments by reference"
)]
pub trait Handler<Args>: Send + Sync + 'static {
    /// The event that it handles.
    type Event: OutboxEvent;

    /// Builds the arguments and starts the call.
    ///
    /// # Errors
    ///
    /// When an argument cannot be built.
    fn call(&self, event: Self::Event, call: &Call) -> Result<HandlerFuture, HandlerError>;

    /// What the arguments need; checked when the router is built.
    #[doc(hidden)]
    fn requires() -> Vec<Requirement> {
        Vec::new()
    }
}

/// What a function with `#[handler]` may return. Named by expansions: one trait for all of them is less to compile than
/// one for each.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handler returns `Result<(), E>`, and this one returns `{Self}`",
    label = "not the result of a handler",
    note = "`E` is `HandlerError` or any `std::error::Error`; what is neither can be converted: `.map_err(HandlerError::transient)`"
)]
pub trait Outcome {
    /// The result, as ours.
    #[allow(clippy::missing_errors_doc)]
    fn outcome(self) -> Result<(), HandlerError>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<HandlerError>> Outcome for Result<(), E> {
    fn outcome(self) -> Result<(), HandlerError> {
        self.map_err(Into::into)
    }
}

/// A struct that handles an event, for handlers that carry their own parts.
///
/// ```
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "orders.order-placed", version = 1, ordering = none)]
/// # struct OrderPlaced { order_id: i32 }
/// use outbox_core::{EventHandler, HandlerError, MessageContext, Router};
///
/// struct CountOrders { by: u64 }
///
/// impl EventHandler<OrderPlaced> for CountOrders {
///     async fn handle(&self, event: OrderPlaced, _: &MessageContext) -> Result<(), HandlerError> {
///         let _ = (event.order_id, self.by);
///         Ok(())
///     }
/// }
///
/// let router = Router::builder().on_struct("stats.count-orders", CountOrders { by: 1 }).build()?;
/// # let _ = router;
/// # Ok::<(), outbox_core::RouterErrors>(())
/// ```
pub trait EventHandler<E: OutboxEvent>: Send + Sync + 'static {
    /// Handles one message. May run again for the same message; see [`MessageContext::message_id`].
    fn handle(&self, event: E, cx: &MessageContext) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

/// Keeps the implementation for structs apart from those for functions.
#[derive(Debug)]
pub struct ByStruct<E>(std::marker::PhantomData<E>);

#[diagnostic::do_not_recommend]
impl<E: OutboxEvent, H: EventHandler<E>> Handler<ByStruct<E>> for std::sync::Arc<H> {
    type Event = E;

    fn call(&self, event: E, call: &Call) -> Result<HandlerFuture, HandlerError> {
        let (handler, cx) = (self.clone(), call.context().clone());
        Ok(Box::pin(async move { handler.handle(event, &cx).await }))
    }
}

macro_rules! functions {
    ($($arg:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<F, Fut, Err, Event, $($arg),*> Handler<(Event, $($arg,)*)> for F
        where
            F: Fn(Event, $($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<(), Err>> + Send + 'static,
            Err: Into<HandlerError>,
            Event: OutboxEvent,
            $($arg: FromMessage,)*
        {
            type Event = Event;

            #[allow(non_snake_case, unused_variables)]
            fn call(&self, event: Event, call: &Call) -> Result<HandlerFuture, HandlerError> {
                $(let $arg = $arg::from_message(call)?;)*
                let future = self(event, $($arg),*);
                Ok(Box::pin(async move { future.await.map_err(Into::into) }))
            }

            fn requires() -> Vec<Requirement> {
                let requirements: Vec<Option<Requirement>> = vec![$($arg::requires()),*];
                requirements.into_iter().flatten().collect()
            }
        }
    };
}

functions!();
functions!(A1);
functions!(A1 A2);
functions!(A1 A2 A3);
functions!(A1 A2 A3 A4);
functions!(A1 A2 A3 A4 A5);
functions!(A1 A2 A3 A4 A5 A6);

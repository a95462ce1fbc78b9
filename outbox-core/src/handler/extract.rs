//! The arguments of a handler.

use super::{Finish, Handled, HandlerError, MessageContext, finish::Slot};
use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

/// One call of a handler: what its arguments are built from.
#[derive(Clone, Debug)]
pub struct Call {
    handler: Arc<str>,
    context: MessageContext,
    states: Arc<States>,
    slot: Slot,
}

impl Call {
    pub(crate) fn new(handler: Arc<str>, context: MessageContext, states: Arc<States>) -> Self {
        Self { handler, context, states, slot: Slot::default() }
    }

    /// The same call with nothing begun.
    pub(super) fn anew(&self) -> Self {
        Self { slot: Slot::default(), ..self.clone() }
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(super) fn handled(&self) -> Handled {
        let (row, token) = (self.context.row().id, self.context.hold().token);
        Handled { row, token, handler: self.handler.clone() }
    }

    /// Id of the handler that is called.
    pub fn handler_id(&self) -> &str {
        &self.handler
    }

    /// The message that is being handled.
    pub fn context(&self) -> &MessageContext {
        &self.context
    }

    /// The state of type `T` that the router was given.
    pub fn state<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.states.get::<T>()
    }

    /// Registers what is to be done when the handler has succeeded, or returns what was registered before: all arguments
    /// of a call that ask for an `F` share it.
    ///
    /// # Errors
    ///
    /// When another type of step is registered already: the two could not be done as one.
    pub fn finish_with<F: Finish>(&self, make: impl FnOnce() -> F) -> Result<Arc<F>, HandlerError> {
        self.slot.get_or_make(make)
    }
}

/// Something that a handler can take beside the event.
///
/// ```
/// use outbox_core::{FromMessage, HandlerError, ResultExt, handler::Call};
///
/// struct Tenant(String);
///
/// impl FromMessage for Tenant {
///     fn from_message(call: &Call) -> Result<Self, HandlerError> {
///         let tenant = call.context().header("tenant").ok_or("no tenant header").terminal()?;
///         Ok(Tenant(tenant.to_owned()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that an outbox handler can take",
    label = "unsupported handler argument",
    note = "after the event a handler may take `MessageContext`, `State<T>` (with `T: Clone`), or your own type that implements `FromMessage`"
)]
pub trait FromMessage: Sized + Send {
    /// Builds the argument.
    ///
    /// # Errors
    ///
    /// A handler error: the handler then does not run and the attempt fails with it.
    fn from_message(call: &Call) -> Result<Self, HandlerError>;

    /// What the router must have been given, or it cannot be built.
    fn requires() -> Option<Requirement> {
        None
    }
}

impl FromMessage for MessageContext {
    fn from_message(call: &Call) -> Result<Self, HandlerError> {
        Ok(call.context.clone())
    }
}

/// A value that was given to the router with [`state`](crate::RouterBuilder::state), cloned for each call.
#[derive(Clone, Copy, Debug)]
pub struct State<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromMessage for State<T> {
    fn from_message(call: &Call) -> Result<Self, HandlerError> {
        let missing =
            || HandlerError::transient(format!("no state {} was given to the router", type_name::<T>()));
        call.state::<T>().map(State).ok_or_else(missing)
    }

    fn requires() -> Option<Requirement> {
        Some(Requirement::state::<T>())
    }
}

/// A state that some argument needs.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    type_id: TypeId,
    pub(crate) type_name: &'static str,
}

impl Requirement {
    /// A state of this type.
    pub fn state<T: 'static>() -> Self {
        Self { type_id: TypeId::of::<T>(), type_name: type_name::<T>() }
    }
}

/// The states of a router, one of each type.
#[derive(Default)]
pub(crate) struct States(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl States {
    /// False when there was one of this type already.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, state: T) -> bool {
        self.0.insert(TypeId::of::<T>(), Box::new(state)).is_none()
    }

    fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }

    pub(crate) fn meets(&self, requirement: &Requirement) -> bool {
        self.0.contains_key(&requirement.type_id)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "States({})", self.0.len())
    }
}

//! Domain events for a transactional outbox: what an event is, how a stored row reaches its handlers, and how every
//! failure on the way becomes a state that an operator can see. No database and no ORM: those are in
//! [`outbox-seaorm`](https://docs.rs/outbox-seaorm), which most applications use together with this crate.
//!
//! # Layout
//!
//! The modules stand in the order in which an event passes through them:
//!
//! 1. [`event`]: the trait that `#[derive(OutboxEvent)]` implements, the logical name, the payload schemas, older
//!    versions; [`mod@catalog`]: what may change in it; [`sensitive`]: values that are not stored as they are; [`trace`]:
//!    the trace that an event belongs to;
//! 2. [`envelope`], [`buffer`]: what is fixed when an event is raised, and where it waits for the save;
//! 3. [`row`], [`decide`]: the stored form and its state machine, as pure functions;
//! 4. [`store`]: what a relay asks of a database;
//! 5. [`mod@handler`], [`router`]: name → code;
//! 6. [`relay`]: the loop that claims, dispatches and marks;
//! 7. [`observe`], [`Monitor`]: what happens, and what is late, for alerts and metrics;
//! 8. [`testing`] (feature `testing`): an in-memory store with the same behaviour, a relay in the hands of a test, and
//!    assertions.
//!
//! # Guarantees
//!
//! Delivery is **at least once**: a handler may see a message again after a crash or a lost lease, always under the
//! same [`MessageId`]. A row is marked dispatched only after all its handlers have succeeded. A row that nobody can
//! handle stays pending; a row that fails for good is kept as a dead letter. Rows of one ordering key are dispatched in
//! the order in which they were stored; between keys there is no order.

// raise
pub mod catalog;
mod cause;
pub mod event;
pub mod sensitive;
pub mod trace;

// save: what will be written
pub mod buffer;
pub mod envelope;
pub mod fate;

// row
pub mod backoff;
pub mod decide;
pub mod row;

// seam
pub mod store;

// decode and dispatch
pub mod handler;
pub mod router;

// run
mod clock;
pub mod observe;
mod panics;
pub mod relay;
pub mod wake;

// watch
mod monitor;
#[cfg(feature = "opentelemetry")]
pub mod otel;

#[cfg(feature = "testing")]
pub mod testing;

#[doc(hidden)]
pub mod __private;

pub use backoff::RetryPolicy;
pub use buffer::EventBuffer;
pub use envelope::{Envelope, MessageId};
pub use event::{EventDescriptor, EventError, Ordering, OutboxEvent, catalog};
pub use handler::{EventHandler, FromMessage, Handler, HandlerError, MessageContext, ResultExt, State};
pub use monitor::{Lag, Monitor};
pub use relay::{Relay, RelayConfig, RelayError};
pub use router::{Router, RouterBuilder, RouterErrors};
pub use row::{ErrorClass, OutboxRow, RowId, Status};
pub use store::{OutboxStore, StoreError};

/// Gives a struct or an enum its place in the outbox: a versioned logical name, an ordering policy, payload schemas
/// and an entry in the [`catalog`](fn@catalog).
///
/// ```
/// use outbox_core::OutboxEvent;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// #[outbox(name = "orders.order-placed", version = 1, ordering = none)]
/// struct OrderPlaced {
///     order_id: i32,
///     total_cents: i64,
/// }
///
/// assert_eq!(OrderPlaced::LOGICAL_NAME, "orders.order-placed.v1");
/// ```
///
/// # Attributes
///
/// | attribute | meaning | default |
/// | --- | --- | --- |
/// | `name = "context.what-happened"` | the stored name; lowercase kebab-case segments joined by dots, at most 200 bytes. It outlives renames of the Rust type | required |
/// | `version = N` | version of the payload, 1 to 65535 | required |
/// | `ordering = aggregate` | kept in order with the other events of its aggregate | yes |
/// | `ordering = none` | no order is kept | |
/// | `on_dead = block` | a dead letter holds up its ordering key until it is replayed and dispatched, or skipped | yes |
/// | `on_dead = proceed` | the key goes on without it | |
/// | `ordering = key(field)` | kept in order with all events that name the same field and have the same value in it | |
/// | `upcast_from = Type` | rows of that older version (and of those that it reads) are read as this event; the event has `From<Type>` or `TryFrom<Type>` | |
/// | `upcast_json(1 = function, …)` | rows of older versions whose types are gone; each function, `fn(serde_json::Value) -> Result<serde_json::Value, E>`, brings the payload to the next version that is named, the last to this one | |
/// | `alias = "context.former-name"` | rows under a former name are read as well; may be repeated | |
/// | `draft` | the version is not released yet: the [catalog's check](mod@catalog) lets it change | |
/// | `crate = ::path` | where `outbox_core` is found, when it is renamed or re-exported | `::outbox_core` |
///
/// On a field, `#[outbox(sensitive)]` makes it a compile error to store the value in plaintext; see [`sensitive`].
///
/// # Errors at compile time
///
/// Names outside the grammar, a missing name or version, unknown or repeated attributes, generics, unions, two events
/// with one name and version in a crate, and serde functions that would make the schema lie are all reported at once,
/// at the word that is wrong. So are an `upcast_from` that is no older version of the same event or cannot be
/// converted, and a sensitive field in plaintext.
pub use outbox_derive::OutboxEvent;

/// Turns an `async fn` into a handler that [`RouterBuilder::discover`] finds.
///
/// The first argument is the event, by value. The others are anything that implements [`FromMessage`], by value or
/// by reference, in any order. The function itself is left as it is and can be called in a test.
///
/// ```
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "orders.order-placed", version = 1, ordering = none)]
/// # struct OrderPlaced { order_id: i32 }
/// use outbox_core::{HandlerError, MessageContext, State, handler};
///
/// #[derive(Clone)]
/// struct Mailer;
///
/// #[handler(id = "mail.confirm-order")]
/// async fn confirm(event: OrderPlaced, State(mailer): State<Mailer>, cx: &MessageContext) -> Result<(), HandlerError> {
///     let _ = (event.order_id, mailer, cx.message_id());
///     Ok(())
/// }
/// # fn main() {}
/// ```
///
/// The `id` is stored with each failed attempt and with the progress of a row, so it must survive a rename of the
/// function; it follows the grammar of event names.
pub use outbox_derive::handler;

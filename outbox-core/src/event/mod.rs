//! What an event is: a past-tense fact with a versioned logical name, a payload and an ordering policy.

mod catalog;
mod decode;
mod depth;
mod finite;
mod key;
mod schema;
mod upcast;

pub use catalog::{EventDescriptor, catalog};
pub use decode::{DecodeError, decode_json};
pub use key::{aggregate_key, field_key, lane, named_key};
pub use schema::PayloadSchemas;
pub use upcast::{Reader, Upcast};

#[doc(hidden)]
pub use upcast::{Chain, JsonUpcast, upcast_json};

pub(crate) use decode::place;
pub(crate) use depth::depth;
pub(crate) use finite::is_finite;

use crate::envelope::MessageId;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

/// The largest payload that is stored, in bytes of JSON: 1 MiB.
///
/// A larger one is refused when the event is raised or saved. Put large documents where documents live and raise an
/// event that names them.
pub const MAX_PAYLOAD_BYTES: usize = 1024 * 1024;

/// The deepest that objects and lists of a payload may stand in each other: what `serde_json` can read back.
pub const MAX_PAYLOAD_DEPTH: usize = 127;

/// The longest `aggregate_type`, in bytes.
pub const MAX_AGGREGATE_TYPE_BYTES: usize = 100;

/// The longest `aggregate_id`, in bytes.
pub const MAX_AGGREGATE_ID_BYTES: usize = 255;

/// The longest ordering key as stored (with its `type/` or `field=` prefix), in bytes.
pub const MAX_ORDERING_KEY_BYTES: usize = 400;

/// The longest correlation id, in bytes.
pub const MAX_CORRELATION_ID_BYTES: usize = 200;

/// The most that the headers of one message may take, in bytes of JSON: 64 KiB.
pub const MAX_HEADERS_BYTES: usize = 64 * 1024;

/// A domain event that can be stored in the outbox. Implement it with `#[derive(OutboxEvent)]`.
///
/// The derive needs `Serialize`, `Deserialize` and `JsonSchema` beside it: the first two write and read the stored
/// payload, the third describes both (see [`EventDescriptor::schemas`]).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an outbox event",
    label = "not an event",
    note = "derive it: `#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]` with `#[outbox(name = \"context.what-happened\", version = 1)]`"
)]
pub trait OutboxEvent: Payload {
    /// The stored name without its version: `orders.order-placed`.
    const EVENT_TYPE: &'static str;
    /// Version of the payload, from 1.
    const EVENT_VERSION: u16;
    /// Name and version as they are written together: `orders.order-placed.v2`.
    const LOGICAL_NAME: &'static str;
    /// What order is kept between this event and others.
    const ORDERING: Ordering;
    /// Whether the rows behind a dead letter of this event go on without it (`on_dead = proceed`); they wait for it
    /// otherwise.
    const PROCEEDS: bool = false;
    /// Former names: rows that were stored under them are read as this event.
    const ALIASES: &'static [&'static str] = &[];
    /// Whether the payload may still change freely, because nothing of this version was ever stored for good.
    const IS_DRAFT: bool = false;

    /// The key of an event declared with `ordering = key(field)`; `None` for the other policies.
    fn ordering_key(&self) -> Option<String> {
        None
    }

    /// Whether a stored payload of `version` can be turned into this type.
    fn reads(version: u16) -> bool {
        Self::reader(version).is_some()
    }

    /// What reads a stored payload of `version`.
    #[doc(hidden)]
    fn reader(version: u16) -> Option<Reader> {
        if version == Self::EVENT_VERSION { Reader::itself::<Self>() } else { None }
    }

    /// Reads a stored payload.
    ///
    /// # Errors
    ///
    /// When the version is not one that this type [reads](Self::reads), the JSON does not fit the type, or the conversion
    /// from an earlier version refuses it. The error never quotes a value of the payload.
    fn decode(version: u16, payload: &str) -> Result<Self, DecodeError>;
}

/// What a type must be able to do to be stored: be written and read by serde, and describe itself.
///
/// Implemented for every type that has the three derives; there is nothing to implement by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as the payload of an event",
    label = "needs `Serialize`, `Deserialize` and `JsonSchema`",
    note = "write `#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]` (from serde, serde, schemars and outbox_core)",
    note = "an event owns its data: no borrowed fields, and it is Send + Sync"
)]
pub trait Payload: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static> Payload for T {}

/// What order is kept between an event and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ordering {
    /// With the other events of the aggregate that raised it (the default).
    Aggregate,
    /// None. The cheapest, and right for events that do not depend on each other.
    None,
    /// With all events that have the same value in the field of the same name.
    Key,
}

impl Ordering {
    /// Whether any order is kept.
    pub fn is_ordered(self) -> bool {
        self != Self::None
    }
}

/// Why an event cannot be stored. Raised when it is raised or saved, before anything is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// serde refused to write the payload.
    #[error(
        "event {event} ({message_id}) cannot be written as JSON: {reason}. Nothing was saved; mend its `Serialize`"
    )]
    Encode {
        /// Logical name.
        event: String,
        /// The event's identity.
        message_id: MessageId,
        /// What went wrong.
        reason: String,
    },
    /// A value of the payload could not be sealed, and is not stored without.
    #[error("event {event} ({message_id}) has a value that cannot be sealed: {reason}. Nothing was saved")]
    Seal {
        /// Logical name.
        event: String,
        /// The event's identity.
        message_id: MessageId,
        /// What went wrong.
        reason: String,
    },
    /// The payload is over [`MAX_PAYLOAD_BYTES`].
    #[error(
        "the payload of event {event} ({message_id}) has {bytes} bytes, the limit is {limit}. Nothing was saved; store the large part elsewhere and put a reference into the event"
    )]
    PayloadTooLarge {
        /// Logical name.
        event: String,
        /// The event's identity.
        message_id: MessageId,
        /// Its size as JSON.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A text that becomes a column is longer than the column.
    #[error(
        "the {field} of event {event} ({message_id}) has {bytes} bytes, the limit is {limit}. Nothing was saved"
    )]
    TooLong {
        /// Logical name.
        event: String,
        /// The event's identity.
        message_id: MessageId,
        /// Which text.
        field: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A text that becomes a column contains NUL, which not every database can store.
    #[error(
        "the {field} of event {event} ({message_id}) contains a NUL character, which not every database can store. Nothing was saved; remove it"
    )]
    Nul {
        /// Logical name.
        event: String,
        /// The event's identity.
        message_id: MessageId,
        /// Which text.
        field: &'static str,
    },
    /// An event ordered by its aggregate was appended without one.
    #[error(
        "event {event} ({message_id}) is ordered by its aggregate, but it was appended without one. Nothing was saved; raise it on the aggregate, use `append_ordered` with a key, or declare `ordering = none`"
    )]
    NeedsAggregate {
        /// Logical name.
        event: String,
        /// The event's identity.
        message_id: MessageId,
    },
}

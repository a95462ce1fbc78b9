//! What is fixed when an event is raised.

use crate::event::{
    EventError, MAX_AGGREGATE_ID_BYTES, MAX_AGGREGATE_TYPE_BYTES, MAX_CORRELATION_ID_BYTES,
    MAX_HEADERS_BYTES, MAX_ORDERING_KEY_BYTES, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, Ordering, OutboxEvent,
    depth, is_finite,
};
use crate::{
    cause::{self, Cause},
    trace::{self, TRACEPARENT, TRACESTATE, TraceContext},
};
use chrono::{DateTime, SubsecRound, Utc};
use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};
use uuid::Uuid;

/// Identity of a message: a UUID v7, fixed when the event is raised and the same in every delivery.
///
/// Consumers use it as their idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct MessageId(Uuid);

impl MessageId {
    /// A fresh id.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The UUID itself.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl Default for MessageId {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Uuid> for MessageId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({})", self.0)
    }
}

/// An event with its metadata, as it will be stored. Immutable once it is in the outbox.
///
/// One that is made while a handler runs names the handled message as its cause and belongs to the same conversation
/// and the same trace: [`causation_id`](Self::causation_id), [`correlation_id`](Self::correlation_id) (the handled
/// message's, or its id where it has none) and the headers `traceparent` and `tracestate` are set then. Set them to
/// something else, or clear them, as you like. Outside a handler they are empty, but for what
/// [`trace::set_source`] adds.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// Identity of the message.
    pub message_id: MessageId,
    /// Stored name of the event.
    pub event_type: Cow<'static, str>,
    /// Version of the payload.
    pub event_version: u16,
    /// Type of the aggregate that raised it, if one did.
    pub aggregate_type: Option<String>,
    /// Id of that aggregate.
    pub aggregate_id: Option<String>,
    /// The key whose order is kept; `None` when no order is.
    pub ordering_key: Option<String>,
    /// The payload as JSON text, kept to the letter.
    pub payload: String,
    /// Trace context, tenant, and the user's own.
    pub headers: BTreeMap<String, String>,
    /// The conversation that the message belongs to.
    pub correlation_id: Option<String>,
    /// The message that caused this one.
    pub causation_id: Option<MessageId>,
    /// When it was raised, by the application's clock, in whole microseconds.
    pub occurred_at: DateTime<Utc>,
    /// Version of the aggregate when it was raised, where the aggregate has one.
    pub aggregate_version: Option<i64>,
    /// What the event declares. Not stored: a stored envelope has a key, or none.
    ordering: Ordering,
    /// The key was given by the caller and stands for nothing else.
    keyed_by_caller: bool,
}

impl Envelope {
    /// Wraps an event: identity and time are fixed now, the payload is written as JSON.
    ///
    /// # Errors
    ///
    /// When the payload cannot be written or is over [`MAX_PAYLOAD_BYTES`].
    pub fn new<E: OutboxEvent>(event: &E) -> Result<Self, EventError> {
        Self::raised(Stamp::now(), event)
    }

    /// As [`new`](Self::new), under an id of the caller's: the same id twice is one message.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_id<E: OutboxEvent>(message_id: MessageId, event: &E) -> Result<Self, EventError> {
        Self::raised(Stamp { message_id, ..Stamp::now() }, event)
    }

    pub(crate) fn raised<E: OutboxEvent>(stamp: Stamp, event: &E) -> Result<Self, EventError> {
        let facts = Facts {
            event_type: E::EVENT_TYPE,
            event_version: E::EVENT_VERSION,
            logical_name: E::LOGICAL_NAME,
            ordering: E::ORDERING,
        };
        // All that knows the type; what follows is compiled once, and not once an event.
        let payload = encode(&|| serde_json::to_string(event));
        Self::checked(stamp, facts, payload, &|| is_finite(event), event.ordering_key())
    }

    fn checked(
        stamp: Stamp,
        facts: Facts,
        payload: Result<String, Refused>,
        is_finite: &dyn Fn() -> bool,
        ordering_key: Option<String>,
    ) -> Result<Self, EventError> {
        let Stamp { message_id, occurred_at, origin } = stamp;
        let Facts { event_type, event_version, logical_name, ordering } = facts;
        let payload = payload.map_err(|refused| refused.into_error(logical_name, message_id))?;
        let refused = |reason: String| {
            let event = logical_name.to_owned();
            Err(EventError::Encode { event, message_id, reason })
        };
        // Only a number that was written as `null` can be lost, so the walk is rare.
        if payload.contains("null") && !is_finite() {
            return refused(
                "a floating-point number is NaN or infinite, which JSON cannot express".to_owned(),
            );
        }
        let levels = depth(&payload);
        if levels > MAX_PAYLOAD_DEPTH {
            return refused(format!(
                "it is nested {levels} levels deep, and {MAX_PAYLOAD_DEPTH} can be read back"
            ));
        }
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(EventError::PayloadTooLarge {
                event: logical_name.to_owned(),
                message_id,
                bytes: payload.len(),
                limit: MAX_PAYLOAD_BYTES,
            });
        }
        Ok(Self {
            message_id,
            event_type: Cow::Borrowed(event_type),
            event_version,
            aggregate_type: None,
            aggregate_id: None,
            ordering_key,
            payload,
            headers: origin.headers(),
            correlation_id: origin.cause.as_ref().map(|cause| cause.correlation_id.clone()),
            causation_id: origin.cause.as_ref().map(|cause| cause.message_id),
            occurred_at,
            aggregate_version: None,
            ordering,
            keyed_by_caller: false,
        })
    }

    /// A stored message, read back.
    pub fn stored(message_id: MessageId, event_type: String, event_version: u16, payload: String) -> Self {
        Self {
            message_id,
            event_type: Cow::Owned(event_type),
            event_version,
            aggregate_type: None,
            aggregate_id: None,
            ordering_key: None,
            payload,
            headers: BTreeMap::new(),
            correlation_id: None,
            causation_id: None,
            occurred_at: DateTime::UNIX_EPOCH,
            aggregate_version: None,
            ordering: Ordering::None,
            keyed_by_caller: false,
        }
    }

    /// Name and version as they are written together: `orders.order-placed.v2`.
    pub fn logical_name(&self) -> String {
        format!("{}.v{}", self.event_type, self.event_version)
    }

    /// The lane of its ordering key.
    pub fn lane(&self) -> Option<u8> {
        self.ordering_key.as_deref().map(crate::event::lane)
    }

    /// The ordering key, unless it is the key of its aggregate: the aggregate's own row is locked by its save, for any
    /// other key a writer must lock something else.
    pub fn free_key(&self) -> Option<&str> {
        self.ordering_key.as_deref().filter(|_| !self.is_ordered_by_aggregate())
    }

    /// Whether its order is that of its aggregate.
    pub fn is_ordered_by_aggregate(&self) -> bool {
        self.ordering == Ordering::Aggregate && !self.keyed_by_caller
    }

    /// Names the aggregate that raised it.
    pub fn with_aggregate(mut self, aggregate_type: &str, aggregate_id: &str) -> Self {
        if self.is_ordered_by_aggregate() {
            self.ordering_key = Some(crate::event::aggregate_key(aggregate_type, aggregate_id));
        }
        self.aggregate_type = Some(aggregate_type.to_owned());
        self.aggregate_id = Some(aggregate_id.to_owned());
        self
    }

    /// Sets the version that its aggregate had.
    pub fn with_aggregate_version(mut self, version: Option<i64>) -> Self {
        self.aggregate_version = version;
        self
    }

    /// Orders it by a key of the caller's, whatever the event declares.
    pub fn with_ordering_key(mut self, key: &str) -> Self {
        self.ordering_key = Some(crate::event::named_key(key));
        self.keyed_by_caller = true;
        self
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets the conversation that the message belongs to.
    pub fn with_correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Names the message that caused this one.
    pub fn with_causation_id(mut self, id: MessageId) -> Self {
        self.causation_id = Some(id);
        self
    }

    /// What events that this message causes need to know of it.
    pub(crate) fn cause(&self) -> Cause {
        let correlation_id = self.correlation_id.clone().unwrap_or_else(|| self.message_id.to_string());
        Cause { message_id: self.message_id, correlation_id, trace: self.trace() }
    }

    /// The trace in which the message was raised, as its headers tell.
    pub fn trace(&self) -> Option<TraceContext> {
        let header = |name: &str| self.headers.get(name).cloned();
        let traceparent = header(TRACEPARENT)?;
        Some(TraceContext { traceparent, tracestate: header(TRACESTATE) })
    }

    /// Checks everything that a column or an index could refuse. Called before each insert.
    ///
    /// # Errors
    ///
    /// The first text that is too long or contains NUL, or a missing aggregate.
    pub fn check(&self) -> Result<(), EventError> {
        let (event, message_id) = (self.logical_name(), self.message_id);
        if self.ordering == Ordering::Aggregate && self.ordering_key.is_none() {
            return Err(EventError::NeedsAggregate { event, message_id });
        }
        let texts = [
            ("aggregate type", self.aggregate_type.as_deref(), MAX_AGGREGATE_TYPE_BYTES),
            ("aggregate id", self.aggregate_id.as_deref(), MAX_AGGREGATE_ID_BYTES),
            ("ordering key", self.ordering_key.as_deref(), MAX_ORDERING_KEY_BYTES),
            ("correlation id", self.correlation_id.as_deref(), MAX_CORRELATION_ID_BYTES),
        ];
        for (field, text, limit) in texts {
            let Some(text) = text else { continue };
            if text.len() > limit {
                return Err(EventError::TooLong { event, message_id, field, bytes: text.len(), limit });
            }
            if text.contains('\0') {
                return Err(EventError::Nul { event, message_id, field });
            }
        }
        let bytes = self.headers_json().len();
        if bytes > MAX_HEADERS_BYTES {
            let (field, limit) = ("headers", MAX_HEADERS_BYTES);
            return Err(EventError::TooLong { event, message_id, field, bytes, limit });
        }
        Ok(())
    }

    /// The headers as the JSON object that is stored.
    pub fn headers_json(&self) -> String {
        serde_json::Value::from_iter(self.headers.clone()).to_string()
    }
}

/// Why serde did not write a payload.
enum Refused {
    Encode(String),
    #[cfg(feature = "seal")]
    Seal(String),
}

impl Refused {
    fn into_error(self, event: &str, message_id: MessageId) -> EventError {
        let event = event.to_owned();
        match self {
            Self::Encode(reason) => EventError::Encode { event, message_id, reason },
            #[cfg(feature = "seal")]
            Self::Seal(reason) => EventError::Seal { event, message_id, reason },
        }
    }
}

/// What an event's type says of it.
#[derive(Clone, Copy)]
struct Facts {
    event_type: &'static str,
    event_version: u16,
    logical_name: &'static str,
    ordering: Ordering,
}

fn encode(write: &dyn Fn() -> serde_json::Result<String>) -> Result<String, Refused> {
    #[cfg(feature = "seal")]
    drop(crate::sensitive::take_refusal());
    write().map_err(|error| {
        #[cfg(feature = "seal")]
        if let Some(refusal) = crate::sensitive::take_refusal() {
            return Refused::Seal(refusal.to_string());
        }
        // serde_json's own words name no value; those of a `Serialize` written by hand may.
        Refused::Encode(match error.classify() {
            serde_json::error::Category::Data => "its `Serialize` refused".to_owned(),
            _ => error.to_string(),
        })
    })
}

/// Names the message and never shows its payload.
impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("message_id", &self.message_id)
            .field("event", &self.logical_name())
            .field("aggregate_type", &self.aggregate_type)
            .field("aggregate_id", &self.aggregate_id)
            .field("payload_bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

/// Identity, time and origin of a raised event, fixed before its payload is known.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) message_id: MessageId,
    pub(crate) occurred_at: DateTime<Utc>,
    origin: Origin,
}

impl Stamp {
    pub(crate) fn now() -> Self {
        // Whole microseconds are what the databases keep; more would come back different from what was raised.
        let occurred_at = Utc::now().trunc_subsecs(6);
        let origin = Origin { cause: cause::current(), trace: trace::from_source() };
        Self { message_id: MessageId::new(), occurred_at, origin }
    }
}

/// What led to an event.
#[derive(Clone, Debug)]
struct Origin {
    /// The message that is being handled.
    cause: Option<Arc<Cause>>,
    /// The trace as the application knows it.
    trace: Option<TraceContext>,
}

impl Origin {
    fn headers(&self) -> BTreeMap<String, String> {
        let of_cause = || self.cause.as_ref().and_then(|cause| cause.trace.as_ref());
        let Some(TraceContext { traceparent, tracestate }) = self.trace.as_ref().or_else(of_cause) else {
            return BTreeMap::new();
        };
        let state = tracestate.iter().map(|state| (TRACESTATE, state));
        let headers = std::iter::once((TRACEPARENT, traceparent)).chain(state);
        headers.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(traceparent: &str, tracestate: Option<&str>) -> TraceContext {
        TraceContext { traceparent: traceparent.to_owned(), tracestate: tracestate.map(str::to_owned) }
    }

    fn headers(cause: Option<TraceContext>, source: Option<TraceContext>) -> String {
        let cause = cause.map(|trace| {
            let id = MessageId::new();
            Arc::new(Cause { message_id: id, correlation_id: id.to_string(), trace: Some(trace) })
        });
        serde_json::Value::from_iter(Origin { cause, trace: source }.headers()).to_string()
    }

    #[test]
    fn the_trace_that_the_application_knows_stands_before_that_of_the_handled_message() {
        let handled = trace("handled", Some("of=handled"));
        assert_eq!(headers(None, None), "{}");
        assert_eq!(
            headers(Some(handled.clone()), None),
            r#"{"traceparent":"handled","tracestate":"of=handled"}"#
        );
        // The two headers belong together: a span of ours says nothing with a state of another's.
        assert_eq!(headers(Some(handled), Some(trace("ours", None))), r#"{"traceparent":"ours"}"#);
    }
}

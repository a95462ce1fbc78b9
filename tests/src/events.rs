//! Sample events.

use outbox_core::{Envelope, OutboxEvent, store::Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order was placed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
pub struct OrderPlaced {
    /// Key of the order.
    pub order_id: i32,
    /// What it costs.
    pub total_cents: i64,
}

/// An order was shipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-shipped", version = 1, ordering = none)]
pub struct OrderShipped {
    /// By whom.
    pub carrier: String,
}

/// An event that keeps the order of its aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-numbered", version = 1)]
pub struct OrderNumbered {
    /// A number.
    pub number: u32,
}

/// An event that keeps the order of a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.customer-moved", version = 1, ordering = key(customer_id))]
pub struct CustomerMoved {
    /// The customer.
    pub customer_id: i64,
}

/// An event with any text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "notes.note-taken", version = 1, ordering = none)]
pub struct NoteTaken {
    /// The text.
    pub text: String,
}

/// A message of a placed order.
///
/// # Panics
///
/// Never: the event is small.
pub fn placed(order_id: i32) -> Envelope {
    Envelope::new(&OrderPlaced { order_id, total_cents: 100 }).unwrap()
}

/// So many of them.
pub fn placed_many(count: i32) -> Vec<Envelope> {
    (1..=count).map(placed).collect()
}

/// The route of an event.
pub fn route<E: OutboxEvent>() -> Route {
    Route { event_type: E::EVENT_TYPE, event_version: E::EVENT_VERSION }
}

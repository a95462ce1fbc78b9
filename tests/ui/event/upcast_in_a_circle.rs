use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, upcast_from = OrderPlaced)]
struct OrderPlacedV1;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, upcast_from = OrderPlacedV1)]
struct OrderPlaced;

impl From<OrderPlaced> for OrderPlacedV1 {
    fn from(_: OrderPlaced) -> Self {
        Self
    }
}

impl From<OrderPlacedV1> for OrderPlaced {
    fn from(_: OrderPlacedV1) -> Self {
        Self
    }
}

// The second goes round on its own.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 3, upcast_from = OrderPacked)]
struct OrderPacked;

fn main() {}

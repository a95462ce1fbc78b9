use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-shipped", version = 1)]
struct OrderShipped;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, upcast_from = OrderShipped)]
struct OrderPlaced;

impl From<OrderShipped> for OrderPlaced {
    fn from(_: OrderShipped) -> Self {
        Self
    }
}

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, upcast_from = OrderPlacedV1)]
struct OrderPlaced;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-shipped", version = 1, alias = "orders.shipped")]
struct OrderShipped;

fn main() {}

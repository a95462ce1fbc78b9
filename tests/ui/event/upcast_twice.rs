use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2)]
struct OrderPlacedV2;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 3, upcast_from = OrderPlacedV2, upcast_json(1 = from_v1))]
struct OrderPlaced;

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::Value;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, upcast_json(1 = keep))]
struct OrderPlaced;

fn keep(payload: Value) -> Value {
    payload
}

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::Value;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, upcast_json(1 = keep, 2 = keep, 3 = keep))]
struct NotOlder;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 3, upcast_json(1 = keep, 1 = keep))]
struct Twice;

fn keep(payload: Value) -> Result<Value, String> {
    Ok(payload)
}

fn main() {}

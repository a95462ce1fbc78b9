use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox = "orders.order-placed"]
struct NameValue;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name "orders.order-placed", version = 1)]
struct NoEquals;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = orders.order_placed, version = 1 2)]
struct NoLiteral;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version =, crate = "outbox_core")]
struct NoValue;

fn main() {}

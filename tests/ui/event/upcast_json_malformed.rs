use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, upcast_json)]
struct NoFunction;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 2, upcast_json = from_v1)]
struct NoVersion;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-shipped", version = 2, upcast_json(from_v1))]
struct NoVersionEither;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-lost", version = 2, upcast_json())]
struct Nothing;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-found", version = 2, upcast_json(0 = from_v0))]
struct Zero;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-paid", version = 2, upcast_json(1 = 2))]
struct NotAFunction;

fn main() {}

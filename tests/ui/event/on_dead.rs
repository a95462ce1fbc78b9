use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, on_dead = ignore)]
struct Unknown {
    order_id: i32,
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-shipped", version = 1, ordering = none, on_dead = proceed)]
struct WithoutOrder {
    order_id: i32,
}

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = key(customer_ids))]
struct OrderPlaced {
    customer_ids: Vec<i32>,
}

fn main() {}

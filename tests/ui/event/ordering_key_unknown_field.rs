use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = key(customer))]
struct OrderPlaced {
    customer_id: i32,
    order_id: i32,
}

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlaced {
    #[outbox(sensitive)]
    email: String,
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-changed", version = 1)]
enum OrderChanged {
    #[outbox(name = "orders.order-paid")]
    Paid,
}

fn main() {}

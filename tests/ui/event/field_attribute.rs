use outbox_core::OutboxEvent;
use outbox_core::sensitive::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlaced {
    #[outbox(sensitve)]
    email: Redacted<String>,
    #[outbox(sensitive = true)]
    phone: Redacted<String>,
    #[outbox(name = "orders.order-paid")]
    card: Redacted<String>,
    #[outbox]
    address: Redacted<String>,
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-changed", version = 1)]
enum OrderChanged {
    #[outbox(sensitive)]
    Paid,
}

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use outbox_core::sensitive::Redacted;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlaced {
    #[outbox(sensitive)]
    email: String,
    #[outbox(sensitive)]
    phone: Option<Vec<u8>>,
    #[outbox(sensitive)]
    kept: Option<Redacted<String>>,
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-paid", version = 1)]
enum OrderPaid {
    ByCard(#[outbox(sensitive)] u64),
}

fn main() {}

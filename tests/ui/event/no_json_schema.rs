use outbox_core::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlaced;

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(version = 1)]
struct OrderPlaced {
    order_id: i32,
}

fn main() {
    // The event itself is still one: no error here.
    let _ = OrderPlaced { order_id: 1 }.ordering_key();
}

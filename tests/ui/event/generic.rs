use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct Type<T> {
    order_id: T,
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 1)]
struct Const<const N: usize> {
    order_id: i32,
}

#[derive(Serialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-paid", version = 1)]
struct Lifetime<'a> {
    order_id: &'a str,
}

fn main() {
    // No further error where it is used.
    let _ = Type { order_id: 1 }.ordering_key();
}

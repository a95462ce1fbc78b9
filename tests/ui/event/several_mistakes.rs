use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(nmae = "OrderPlaced", version = 0, ordering = key(customer), topic = "orders")]
struct OrderPlaced<T> {
    #[outbox(sensitive)]
    #[serde(serialize_with = "as_text")]
    order_id: T,
}

fn as_text<T, S: serde::Serializer>(_: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("")
}

fn main() {}

use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod text {
    pub fn serialize<S: serde::Serializer>(total: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(total)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        serde::Deserialize::deserialize(deserializer)
    }
}

// The second error is of schemars: it takes the module for a type.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlaced {
    #[serde(with = "text")]
    total: i64,
}

fn main() {}

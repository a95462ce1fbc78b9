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

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct Writes {
    #[serde(rename = "sum", serialize_with = "text::serialize")]
    total: i64,
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 1)]
enum Reads {
    Total(#[serde(deserialize_with = "text::deserialize")] i64),
}

fn main() {}

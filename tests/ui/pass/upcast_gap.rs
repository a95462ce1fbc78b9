//! A chain of upcasts that leaves out a version compiles, because each type knows its predecessor only; the router sees
//! all of them.

use outbox_core::{OutboxEvent, Router, router::RouterError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlacedV1 {}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, ordering = none, upcast_from = OrderPlacedV1)]
struct OrderPlacedV2 {}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 4, ordering = none, upcast_from = OrderPlacedV1)]
struct OrderPlaced {}

// Reads no older version, so it leaves none out: both have handlers of their own.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 1, ordering = none)]
struct OrderPackedV1 {}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 3, ordering = none)]
struct OrderPacked {}

impl From<OrderPlacedV1> for OrderPlacedV2 {
    fn from(_: OrderPlacedV1) -> Self {
        Self {}
    }
}

impl From<OrderPlacedV1> for OrderPlaced {
    fn from(_: OrderPlacedV1) -> Self {
        Self {}
    }
}

fn main() {
    let _ = (OrderPlacedV2 {}, OrderPackedV1 {}, OrderPacked {});
    let error = Router::builder().build().unwrap_err();
    let [RouterError::UpcastGap { logical_name: "orders.order-placed.v4", missing, .. }] = error.errors() else {
        panic!("{error}")
    };
    assert_eq!(missing.iter().map(|(version, _)| *version).collect::<Vec<_>>(), [2]);
    let text = error.to_string();
    assert!(text.contains("::OrderPlaced (") && text.contains(".rs:18), reads older versions"), "{text}");
    assert!(text.contains("but not v2 of ") && text.contains(".rs:14)"), "{text}");
}

//! Two events that would read the same rows, because of a former name. Within a crate and one version that does not
//! compile; here the versions differ, and the older one is read through a chain.

use outbox_core::{OutboxEvent, Router, router::RouterError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.placed", version = 1, ordering = none)]
struct Placed {}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlacedV1 {}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2, ordering = none, upcast_from = OrderPlacedV1)]
#[outbox(alias = "orders.placed")]
struct OrderPlaced {}

// Fine: the older type kept the former name, and is the one that reads its rows.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.packed", version = 1, ordering = none)]
struct Packed {}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 2, ordering = none, alias = "orders.packed", upcast_from = Packed)]
struct OrderPacked {}

impl From<OrderPlacedV1> for OrderPlaced {
    fn from(_: OrderPlacedV1) -> Self {
        Self {}
    }
}

impl From<Packed> for OrderPacked {
    fn from(_: Packed) -> Self {
        Self {}
    }
}

fn main() {
    let _ = (Placed {}, OrderPlacedV1 {}, OrderPlaced {}, Packed {}, OrderPacked {});
    let error = Router::builder().build().unwrap_err();
    let [RouterError::AmbiguousAlias { alias: "orders.placed", version: 1, .. }] = error.errors() else {
        panic!("{error}")
    };
    let text = error.to_string();
    assert!(text.contains("rows stored as orders.placed.v1 could be read as "), "{text}");
    assert!(text.contains("::OrderPlaced (") && text.contains("::Placed ("), "{text}");
}

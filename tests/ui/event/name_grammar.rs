use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "Orders.OrderPlaced", version = 1)]
struct Uppercase;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "order-placed", version = 1)]
struct OneSegment;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "", version = 1)]
struct Empty;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders..order-placed", version = 1)]
struct EmptySegment;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.2-placed", version = 1)]
struct LeadingDigit;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed-", version = 1)]
struct TrailingHyphen;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders::order_placed", version = 1)]
struct RustPath;

fn main() {}

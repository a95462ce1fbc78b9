use outbox_core::OutboxEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, alias = "Orders.Placed", alias)]
struct OutsideTheGrammar;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 1, alias = "orders.order-packed")]
struct ItsOwnName;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-shipped", version = 1, alias = "orders.shipped", alias = "orders.shipped")]
struct GivenTwice;

fn main() {}

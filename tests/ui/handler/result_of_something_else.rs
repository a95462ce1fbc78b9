#![allow(unused)]

use outbox_core::{HandlerError, MessageContext, OutboxEvent, State, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced;

#[handler(id = "mail.confirm-order")]
async fn value(event: OrderPlaced) -> Result<u32, HandlerError> {
    Ok(1)
}

#[handler(id = "mail.confirm-again")]
async fn text(event: OrderPlaced) -> Result<(), String> {
    Ok(())
}

#[handler(id = "mail.confirm-never")]
async fn number(event: OrderPlaced) -> u32 {
    1
}

fn main() {}

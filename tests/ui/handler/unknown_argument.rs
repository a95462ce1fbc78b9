#![allow(unused)]

use outbox_core::{HandlerError, MessageContext, OutboxEvent, State, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced;

#[handler(di = "mail.confirm-order")]
async fn misspelt(event: OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

#[handler(id = "mail.confirm-order", retries = 3)]
async fn unknown(event: OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

#[handler("mail.confirm-order")]
async fn bare(event: OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

#[handler(id = "mail.confirm-order", id = "mail.confirm")]
async fn twice(event: OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

fn main() {}

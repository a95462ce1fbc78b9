#![allow(unused)]

use outbox_core::{HandlerError, MessageContext, OutboxEvent, State, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced;

#[handler(id = "mail.confirm-order")]
async fn confirm<E: OutboxEvent>(event: E) -> Result<(), HandlerError> {
    Ok(())
}

#[handler(id = "mail.confirm-again")]
async fn lifetime<'a>(event: OrderPlaced, cx: &'a MessageContext) -> Result<(), HandlerError> {
    Ok(())
}

#[handler(id = "mail.confirm-anything")]
async fn hidden(event: OrderPlaced, other: impl Clone) -> Result<(), HandlerError> {
    Ok(())
}

fn main() {}

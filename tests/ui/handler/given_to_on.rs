#![allow(unused)]

use outbox_core::{HandlerError, MessageContext, OutboxEvent, State, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced;

async fn number(order_id: u32) -> Result<(), HandlerError> {
    Ok(())
}

async fn by_reference(event: &OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

async fn no_extractor(event: OrderPlaced, attempt: u32) -> Result<(), HandlerError> {
    Ok(())
}

fn main() {
    let builder = outbox_core::Router::builder();
    let builder = builder.on("mail.confirm-order", number);
    let builder = builder.on("mail.confirm-again", by_reference);
    let builder = builder.on("mail.confirm-never", no_extractor);
}

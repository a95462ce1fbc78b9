#![allow(unused)]

use outbox_core::{HandlerError, MessageContext, OutboxEvent, State, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced;

#[handler(id = "mail.confirm-order")]
fn confirm(event: OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

fn main() {}

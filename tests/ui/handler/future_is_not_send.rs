#![allow(unused)]

use outbox_core::{HandlerError, MessageContext, OutboxEvent, State, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced;

use std::rc::Rc;

#[handler(id = "mail.confirm-order")]
async fn confirm(event: OrderPlaced) -> Result<(), HandlerError> {
    let shared = Rc::new(());
    std::future::ready(()).await;
    drop(shared);
    Ok(())
}

fn main() {}

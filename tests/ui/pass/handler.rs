//! Every shape of handler that is fine, in a crate that denies what a user may deny.

#![deny(warnings, missing_docs, unused_qualifications, unreachable_pub, rust_2018_idioms)]
#![forbid(unsafe_code)]
#![allow(clippy::unused_async)]

use outbox_core::handler::Call;
use outbox_core::{FromMessage, HandlerError, MessageContext, OutboxEvent, State, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced {
    order_id: i32,
}

#[derive(Clone)]
struct Mailer;

/// An argument of the application's own.
struct Tenant(String);

impl FromMessage for Tenant {
    fn from_message(call: &Call) -> Result<Self, HandlerError> {
        let tenant = call.context().header("tenant").ok_or(HandlerError::terminal("no tenant"))?;
        Ok(Tenant(tenant.to_owned()))
    }
}

#[handler(id = "mail.confirm-order")]
async fn event_alone(_: OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

/// Patterns, and arguments that are given and lent.
#[handler(id = "mail.greet-tenant")]
pub(crate) async fn everything(
    OrderPlaced { order_id }: OrderPlaced,
    State(mailer): State<Mailer>,
    cx: &MessageContext,
    mut tenant: Tenant,
    other: &mut Tenant,
    State(_): &State<Mailer>,
) -> Result<(), std::num::ParseIntError> {
    let Mailer = mailer;
    tenant.0.push_str(&cx.message_id().to_string());
    other.0.push_str(&tenant.0);
    order_id.to_string().parse::<u8>().map(drop)
}

/// More arguments than a plain function may have.
#[handler(id = "mail.count-arguments")]
async fn many(
    _: OrderPlaced,
    _: MessageContext,
    _: &MessageContext,
    _: MessageContext,
    _: &MessageContext,
    _: MessageContext,
    _: &MessageContext,
    _: MessageContext,
) -> Result<(), HandlerError> {
    Ok(())
}

/// Another name for the library.
mod facade {
    pub(crate) use outbox_core as core;
}

#[deprecated]
#[handler(id = "search.index-order.v2", crate = crate::facade::core)]
async fn deprecated(event: OrderPlaced) -> Result<(), HandlerError> {
    let _ = event;
    Ok(())
}

macro_rules! handlers {
    ($($id:literal $function:ident $event:ty, $other:ty;)*) => {
        $(
            #[handler(id = $id)]
            async fn $function(event: $event, other: &$other) -> Result<(), HandlerError> {
                let _ = event;
                let _ = other;
                Ok(())
            }
        )*
    };
}
handlers! {
    "from.a-macro" first OrderPlaced, MessageContext;
    "from.the-same" second OrderPlaced, State<Mailer>;
}

/// Names that the generated code must not trip over.
mod names {
    use super::{Call, Deserialize, FromMessage, HandlerError, JsonSchema, OutboxEvent, Serialize, handler};

    #[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "names.event-named-event", version = 1, ordering = none)]
    struct Event;

    struct Argument;

    impl FromMessage for Argument {
        fn from_message(_: &Call) -> Result<Self, HandlerError> {
            Ok(Argument)
        }
    }

    #[handler(id = "names.handle-event")]
    async fn r#fn(event: Event, argument: Argument) -> Result<(), HandlerError> {
        let (_, _) = (event, argument);
        Ok(())
    }
}

fn main() {
    let everything = outbox_core::Router::builder().state(Mailer).discover().expect([
        "mail.confirm-order",
        "mail.greet-tenant",
        "mail.count-arguments",
        "search.index-order.v2",
        "from.a-macro",
        "from.the-same",
        "names.handle-event",
    ]);
    assert!(everything.build().is_ok());

    // The line is the function's, not the attribute's or the macro's.
    let twice = outbox_core::Router::builder().state(Mailer).discover().on("mail.greet-tenant", event_alone);
    let error = twice.build().unwrap_err().to_string();
    assert!(error.contains("handler.rs:38"), "{error}");
}

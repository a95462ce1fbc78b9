//! Older versions, former names, drafts and sensitive fields, in a crate that denies what a user may deny and that
//! knows the library by another name.

#![deny(warnings, missing_docs, unused_qualifications, unreachable_pub, rust_2018_idioms, let_underscore)]
#![forbid(unsafe_code)]

use facade::outbox::{OutboxEvent, sensitive::{Redacted, Sealed}};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Another name for the library.
mod facade {
    pub(crate) use outbox_core as outbox;
}

/// A version that nobody else sees.
mod old {
    use super::{Deserialize, JsonSchema, OutboxEvent, Serialize};

    #[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "orders.placed", version = 2, upcast_json(1 = super::keep::<std::fmt::Error>), crate = crate::facade::outbox)]
    pub(crate) struct OrderPlaced {
        pub(crate) id: i32,
    }
}

/// The newest, with a refusal that is a text.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 3, upcast_from = old::OrderPlaced, alias = "orders.placed", draft)]
#[outbox(alias = "orders.order-taken", crate = crate::facade::outbox)]
pub struct OrderPlaced {
    /// The order.
    pub id: i32,
    /// Who placed it.
    #[outbox(sensitive)]
    pub email: Option<Sealed<String>>,
    #[outbox(sensitive)]
    #[serde(default)]
    phones: Vec<Redacted<String>>,
}

impl TryFrom<old::OrderPlaced> for OrderPlaced {
    type Error = String;

    fn try_from(old: old::OrderPlaced) -> Result<Self, String> {
        if old.id == 0 { Err("no id".to_owned()) } else { Ok(Self { id: old.id, email: None, phones: Vec::new() }) }
    }
}

/// Brings a payload up, by any path and with any error.
fn keep<E: From<std::fmt::Error>>(payload: Value) -> Result<Value, E> {
    if payload.is_null() { Err(std::fmt::Error.into()) } else { Ok(payload) }
}

/// A sensitive field in a variant.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-paid", version = 3, upcast_json(1 = keep::<std::fmt::Error>, 2 = keep::<Box<dyn std::error::Error>>))]
enum OrderPaid {
    ByCard(#[outbox(sensitive)] Sealed<u64>),
    InCash { cents: i64 },
}

fn main() {
    assert_eq!(OrderPlaced::ALIASES, ["orders.placed", "orders.order-taken"]);
    assert!(OrderPlaced::IS_DRAFT && !OrderPaid::IS_DRAFT);
    assert!((1..=3).all(OrderPlaced::reads) && !OrderPlaced::reads(4));
    let event = OrderPlaced::decode(1, r#"{"id":7}"#).unwrap();
    assert!(event.id == 7 && event.email.is_none() && event.phones.is_empty());
    let error = OrderPlaced::decode(2, r#"{"id":0}"#).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "the payload of version 2 was not brought up to orders.order-placed.v3: no id");
    assert!(matches!(OrderPaid::decode(1, r#"{"InCash":{"cents":7}}"#), Ok(OrderPaid::InCash { cents: 7 })));
    assert!(OrderPaid::decode(2, "null").is_err());
    let _unused = OrderPaid::ByCard(Sealed::new(7));
}

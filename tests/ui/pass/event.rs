//! Every shape of event that is fine, in a crate that denies what a user may deny.

#![deny(warnings, missing_docs, unused_qualifications, unreachable_pub, rust_2018_idioms)]
#![forbid(unsafe_code)]

use outbox_core::{Ordering, OutboxEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Another name for the library.
mod facade {
    pub(crate) mod outbox {
        pub(crate) use outbox_core::__private;
    }
}

/// A struct with named fields.
#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 2)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OrderPlaced {
    /// A field.
    pub order_id: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    total: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn as_text<S: serde::Serializer>(total: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(total)
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-packed", version = 1, ordering = none)]
struct Tuple(i32, Vec<OrderPlaced>);

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-closed", version = 65535, ordering = aggregate)]
struct Unit;

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-changed", version = 1, crate = crate::facade::outbox)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum Enum {
    Address { street: String },
    Nothing,
    #[serde(other)]
    Other,
}

/// Attributes may be spread, and a key may be any field that can be displayed.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-paid", version = 1)]
#[outbox(ordering = key(r#type))]
struct Keyed {
    #[deprecated]
    r#type: u64,
}

/// The same name in another version, and names that only look alike.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlacedV1 {}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders-order.placed", version = 1)]
struct Alike {}

macro_rules! declare {
    ($ident:ident, $name:literal, $version:literal, $field:ident) => {
        #[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
        #[outbox(name = $name, version = $version, ordering = key($field))]
        struct $ident {
            $field: String,
        }
    };
}
declare!(FromAMacro, "orders.order-moved", 3, place);

fn main() {
    #[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "orders.order-lost", version = 1)]
    struct InAFunction {}

    assert_eq!(OrderPlaced::LOGICAL_NAME, "orders.order-placed.v2");
    assert_eq!(Unit::EVENT_VERSION, 65535);
    assert_eq!(Tuple::ORDERING, Ordering::None);
    assert_eq!(FromAMacro { place: "x".into() }.ordering_key().as_deref(), Some("place=x"));
    assert_eq!(OrderPlaced { order_id: 1, note: None, total: 2 }.ordering_key(), None);
    assert!(OrderPlaced::decode(1, "{}").is_err());
    let event = OrderPlaced::decode(2, r#"{"orderId":1,"total":2}"#).unwrap();
    assert_eq!((event.order_id, event.total), (1, 2));
    let declared: Vec<_> = outbox_core::catalog().iter().map(|event| event.logical_name).collect();
    assert!(declared.contains(&InAFunction::LOGICAL_NAME) && declared.contains(&Enum::LOGICAL_NAME));
    let line = outbox_core::catalog().iter().find(|event| event.logical_name == Unit::LOGICAL_NAME).unwrap().line;
    assert_eq!(line, 42);
    let _ = (Enum::Nothing, Enum::Other, Enum::Address { street: String::new() }, OrderPlacedV1 {}, Alike {});
}

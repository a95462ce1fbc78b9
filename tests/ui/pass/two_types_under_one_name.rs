//! Two types of one crate under one name do not compile; of two crates they are found when a router is built. The
//! second is written by hand here, because the derive would refuse it.

use outbox_core::{__private as o, OutboxEvent, Router, router::RouterError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct Ours {}

mod billing {
    use super::{Deserialize, JsonSchema, OutboxEvent, Serialize, o};

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(crate) struct Theirs {}

    impl OutboxEvent for Theirs {
        const EVENT_TYPE: &'static str = "orders.order-placed";
        const EVENT_VERSION: u16 = 1;
        const LOGICAL_NAME: &'static str = "orders.order-placed.v1";
        const ORDERING: o::Ordering = o::Ordering::None;

        fn decode(_: u16, payload: &str) -> Result<Self, o::DecodeError> {
            o::decode_json(payload)
        }
    }

    o::inventory::submit! { o::EventDescriptor::new::<Theirs>(module_path!(), "billing.rs", 7) }
}

fn main() {
    let _ = (Ours {}, billing::Theirs {});
    let error = Router::builder().build().unwrap_err();
    assert!(matches!(error.errors(), [RouterError::DuplicateEvent { .. }]), "{error}");
    let text = error.to_string();
    assert!(text.contains("event orders.order-placed.v1 is declared by two types, "), "{text}");
    assert!(text.contains("billing::Theirs (billing.rs:7)") && text.contains("::Ours ("), "{text}");
}

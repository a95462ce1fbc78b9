//! What the expansions of the macros name. Not part of the public API: it changes without notice, which is why the
//! macro crate is pinned to the exact version of this one.

pub use crate::envelope::MessageId;
pub use crate::event::{
    Chain, DecodeError, EventDescriptor, EventError, JsonUpcast, Ordering, OutboxEvent, Payload, Reader,
    decode_json, field_key, upcast_json,
};
pub use crate::handler::{
    Call, FromMessage, Handler, HandlerDescriptor, HandlerError, HandlerFuture, Outcome, Requirement, Source,
};
pub use crate::router::RouterBuilder;
pub use crate::sensitive::sensitive;
pub use inventory;
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{self, Err, Ok};
pub use std::string::String;

//! What the expansion of `#[derive(Aggregate)]` names. Not part of the public API.

pub use crate::{
    error::SaveError,
    save::{Aggregate, CloneableAggregate, Operation, require_deleted, save, version_number},
    tables::TableNames,
};
pub use outbox_core::{EventBuffer, EventError, MessageId, OutboxEvent};
pub use sea_orm::{ConnectionTrait, IntoActiveModel, TransactionTrait};
pub use std::{
    convert::From,
    default::Default,
    future::Future,
    marker::{Send, Sync},
    ops::{Deref, DerefMut, Drop, Fn},
    option::Option::{self, None, Some},
    result::Result::{self, Err, Ok},
};

/// Traits whose methods the expansion calls.
pub mod prelude {
    pub use sea_orm::{ActiveModelTrait as _, TryIntoModel as _};
}

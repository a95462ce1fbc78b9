//! What the expansion of `#[derive(Aggregate)]` names. Not part of the public API.

pub use crate::{
    error::SaveError,
    save::{
        Aggregate, CloneableAggregate, Operation, begin, is_loaded, prepare, require_deleted, settle,
        version_number, write_events,
    },
    tables::TableNames,
};
pub use outbox_core::{EventBuffer, EventError, MessageId, OutboxEvent};
pub use sea_orm::{IntoActiveModel, TransactionTrait};
pub use std::{
    convert::From,
    default::Default,
    marker::{Send, Sync},
    ops::{Deref, DerefMut, Drop, Fn},
    option::Option::{self, None, Some},
    result::Result::{self, Err, Ok},
};

/// Traits whose methods the expansion calls.
pub mod prelude {
    pub use sea_orm::{ActiveModelTrait as _, IntoActiveModel as _, TryIntoModel as _};
}

//! Why a save or an append failed. In every case nothing of it is stored, unless the error says otherwise.

use crate::dialect::{Fault, fault};
use outbox_core::{EventError, MessageId};
use sea_orm::DbErr;

/// A save or an append that did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// An event cannot be stored. Aggregate and events are kept for another try.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The database, or SeaORM, or one of the entity's own hooks refused. Aggregate and events are kept for another
    /// try, under the same message ids.
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The outbox's tables are missing or older than this version.
    #[error(
        "the outbox's tables are missing or older than this version: run the migrations (`outbox_seaorm::migrations()`). Nothing was saved: {0}"
    )]
    Schema(#[source] DbErr),
    /// The events are stored already: an earlier save, whose answer was lost, did commit. The aggregate in memory is
    /// stale and nothing was written now; load it anew.
    #[error(
        "message {message_id} of {aggregate_type} is stored already: an earlier save did commit. Nothing was written now; load the aggregate anew"
    )]
    AlreadyStored {
        /// Type of the aggregate.
        aggregate_type: &'static str,
        /// One of the messages that are there.
        message_id: MessageId,
    },
    /// The aggregate was saved inside a transaction that has rolled back since (or its messages were purged): what is
    /// in memory is not what is stored. Nothing was written; load it anew.
    #[error(
        "the last save of {aggregate_type} is not in the database: the transaction that it was part of rolled back, or its messages were purged. Nothing was written; load the aggregate anew"
    )]
    RolledBack {
        /// Type of the aggregate.
        aggregate_type: &'static str,
    },
    /// Somebody else saved the aggregate since it was loaded. Nothing was written; load it anew and decide again.
    #[error(
        "{aggregate_type} was changed by somebody else: version {stored} is stored, version {loaded} was loaded. Nothing was written; load it anew and decide again"
    )]
    Stale {
        /// Type of the aggregate.
        aggregate_type: &'static str,
        /// The version that it was loaded with.
        loaded: i64,
        /// The version in the database.
        stored: i64,
    },
    /// The row to delete, or to save with a version, is not there.
    #[error("{aggregate_type} is not there any more. Nothing was written; its events are kept")]
    Gone {
        /// Type of the aggregate.
        aggregate_type: &'static str,
    },
    /// The key of the aggregate cannot be written as text.
    #[error(
        "the primary key of {aggregate_type} has a part of type {reason}, which has no text form for `aggregate_id`. Nothing was saved"
    )]
    Key {
        /// Type of the aggregate.
        aggregate_type: &'static str,
        /// Which part.
        reason: String,
    },
}

/// So that `?` works inside SeaORM's own transaction closures.
impl From<SaveError> for DbErr {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Database(error) => error,
            error => Self::Custom(error.to_string()),
        }
    }
}

impl SaveError {
    /// An error of a statement of ours.
    pub(crate) fn of_outbox(error: DbErr) -> Self {
        if fault(&error) == Fault::Schema { Self::Schema(error) } else { Self::Database(error) }
    }
}

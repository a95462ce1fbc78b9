//! Why an inbox could not tell.

use crate::{
    dialect::{Fault, fault},
    error::SaveError,
};
use sea_orm::DbErr;

/// The inbox could not record a message. Nothing of it is stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// The consumer's name cannot be stored on every database. Nothing was asked of this one.
    #[error("the consumer's name {name:?} {problem}. Nothing was recorded; give the consumer another name")]
    Consumer {
        /// The name, cut to 200 characters.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The database refused.
    #[error(transparent)]
    Database(DbErr),
    /// The inbox's table is missing or older than this version.
    #[error(
        "the inbox's table is missing or older than this version: run the migrations (`outbox_seaorm::migrations()`). Nothing was recorded: {0}"
    )]
    Schema(#[source] DbErr),
}

impl InboxError {
    /// Whether another transaction was in the way.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Database(error) if fault(error) == Fault::Conflict)
    }
}

impl From<DbErr> for InboxError {
    fn from(error: DbErr) -> Self {
        if fault(&error) == Fault::Schema { Self::Schema(error) } else { Self::Database(error) }
    }
}

/// So that an effect can be the save of an aggregate.
impl From<InboxError> for SaveError {
    fn from(error: InboxError) -> Self {
        match error {
            InboxError::Database(error) => Self::Database(error),
            InboxError::Schema(error) => Self::Schema(error),
            error @ InboxError::Consumer { .. } => Self::Database(DbErr::Custom(error.to_string())),
        }
    }
}

/// So that an effect can be SeaORM's own.
impl From<InboxError> for DbErr {
    fn from(error: InboxError) -> Self {
        SaveError::from(error).into()
    }
}

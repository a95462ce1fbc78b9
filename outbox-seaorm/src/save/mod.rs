//! The save of an aggregate: its rows and its events, or nothing.
//!
//! What `#[derive(Aggregate)]` writes calls these steps in this order: [`begin`], [`prepare`], SeaORM's own save,
//! [`write_events`], [`settle`]. They are functions and not one generic save because SeaORM's `ActiveModelEx` has its
//! saves as inherent methods, which only the macro can name.

mod key;
mod root;
mod version;

pub use root::{Operation, is_loaded, require_deleted};
pub use version::version_number;

use crate::{
    dialect::{Fault, begin_immediate, fault},
    error::SaveError,
    insert::{stored, write},
    tables::TableNames,
    transaction::handed_over,
};
use outbox_core::{
    Envelope, EventBuffer, MessageId,
    buffer::LastSave,
    fate::{End, Fate},
    wake,
};
use root::require_root;
use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DatabaseConnection, ModelTrait, TransactionSession, TransactionTrait,
};
use version::advance;

/// A struct whose root is saved together with the events that it has raised. Implement it with
/// `#[derive(Aggregate)]`.
pub trait Aggregate {
    /// What SeaORM gives back after a save.
    type Model: ModelTrait;
    /// The stored name of the aggregate's type.
    const AGGREGATE_TYPE: &'static str;
    /// The tables that its events go to.
    const TABLES: TableNames;
    /// The root's column that counts its saves, where there is one.
    const VERSION_COLUMN: Option<&'static str> = None;

    /// The version of a saved root, where it has one.
    fn version(saved: &Self::Model) -> Option<i64> {
        let _ = saved;
        None
    }
}

/// No aggregate implements it: a clone would lose its events or send them twice.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an aggregate cannot be cloned: its raised events would be lost or sent twice",
    label = "cannot be cloned",
    note = "to copy only the root, dereference first: `(*aggregate).clone()`"
)]
pub trait CloneableAggregate<'a> {}

/// Begins the save's own transaction, or a savepoint inside the caller's: a failing save then leaves nothing of
/// itself, even when the caller goes on and commits.
///
/// # Errors
///
/// The database's error.
pub async fn begin<C: TransactionTrait>(db: &C) -> Result<Begun<C::Transaction>, SaveError> {
    let (tx, fate) = handed_over(begin_immediate(db)).await;
    Ok(Begun { tx: tx?, fate })
}

/// The transaction of a save.
#[derive(Debug)]
pub struct Begun<T> {
    tx: T,
    /// How it ends, where it is part of an [`OutboxTransaction`](crate::OutboxTransaction).
    fate: Option<Fate>,
}

impl<T> Begun<T> {
    /// The transaction itself.
    pub fn transaction(&self) -> &T {
        &self.tx
    }
}

/// Checks what can be checked before anything is written, locks the root where SeaORM's save will not, and counts its
/// version where it has one.
///
/// # Errors
///
/// An event that was refused when it was raised; an aggregate that is stale; the database's error.
pub async fn prepare<A: Aggregate, R, T>(
    tx: &T,
    root: &mut R,
    events: &EventBuffer<A::Model>,
    operation: Operation,
) -> Result<(), SaveError>
where
    R: ActiveModelTrait<Entity = <A::Model as ModelTrait>::Entity>,
    T: ConnectionTrait,
{
    events.refusal()?;
    match events.last_save() {
        LastSave::Settled => {}
        LastSave::AlreadyStored { message_id } => return Err(already_stored::<A>(*message_id)),
        LastSave::CommitUnknown(ids) => {
            if let Some(id) = stored(tx, A::TABLES, ids).await?.first() {
                return Err(already_stored::<A>(*id));
            }
        }
        LastSave::Joined { ids, fate } => {
            let is_undone = match fate.as_ref().map(Fate::end) {
                Some(End::Committed) => false,
                Some(End::RolledBack) => true,
                // The transaction is still open, or cannot tell: its messages can.
                _ => stored(tx, A::TABLES, ids).await?.len() < ids.len(),
            };
            if is_undone {
                return Err(SaveError::RolledBack { aggregate_type: A::AGGREGATE_TYPE });
            }
        }
    }
    match A::VERSION_COLUMN {
        // The look at the stored version locks the root as well.
        Some(column) => advance::<A, R>(tx, root, column, operation).await,
        None if !events.is_empty() => require_root::<A, R>(tx, root, operation, events.has_ordered()).await,
        None => Ok(()),
    }
}

/// Writes the raised events, with one INSERT and as the last statement of the save: on PostgreSQL a COMMIT after a
/// failed statement reports success, so nothing that can fail may come after it.
///
/// # Errors
///
/// An event that cannot be stored, messages that are stored already, or the database's error.
pub async fn write_events<A: Aggregate, T: ConnectionTrait>(
    tx: &T,
    events: &EventBuffer<A::Model>,
    saved: &A::Model,
) -> Result<(), SaveError> {
    if events.is_empty() {
        return Ok(());
    }
    let aggregate_id = key::key_text::<A>(saved)?;
    let version = A::version(saved);
    let of_aggregate = |envelope: Envelope| {
        envelope.with_aggregate(A::AGGREGATE_TYPE, &aggregate_id).with_aggregate_version(version)
    };
    let envelopes: Vec<_> = events.resolve(saved)?.into_iter().map(of_aggregate).collect();
    match write(tx, A::TABLES, &envelopes).await {
        // Every id was made for this buffer, so whoever stored it was an earlier save of it.
        Err(SaveError::Database(error)) if fault(&error) == Fault::Duplicate => {
            Err(already_stored::<A>(envelopes[0].message_id))
        }
        written => written,
    }
}

/// Ends the save: commits and empties the buffer, or rolls back and keeps everything. Wakes the relays of this
/// process where the commit is its own.
///
/// # Errors
///
/// The error of the save, or of the commit.
///
/// # Cancel safety
///
/// Dropped while the COMMIT is under way, the aggregate is in doubt: its next save looks for its messages first.
pub async fn settle<C: TransactionTrait, M: ModelTrait>(
    begun: Begun<C::Transaction>,
    events: &mut EventBuffer<M>,
    outcome: Result<M, SaveError>,
) -> Result<M, SaveError> {
    let Begun { tx, fate } = begun;
    let saved = match outcome {
        Ok(saved) => saved,
        Err(error) => {
            match &error {
                SaveError::AlreadyStored { message_id, .. } => events.already_stored(*message_id),
                _ => events.save_failed(),
            }
            // The save's own error says more than a failing rollback, and a lost connection rolls back by itself.
            drop(tx.rollback().await);
            return Err(error);
        }
    };
    // Only a pool is known to begin a transaction of its own. Anything else may be somebody's open transaction.
    let is_own = typeid::of::<C>() == std::any::TypeId::of::<DatabaseConnection>();
    let raised = !events.is_empty();
    events.commit_sent();
    if let Err(error) = tx.commit().await {
        events.save_failed();
        return Err(error.into());
    }
    if !is_own {
        events.saved_within(fate);
        return Ok(saved);
    }
    events.saved();
    if raised {
        wake::committed();
    }
    Ok(saved)
}

fn already_stored<A: Aggregate>(message_id: MessageId) -> SaveError {
    SaveError::AlreadyStored { aggregate_type: A::AGGREGATE_TYPE, message_id }
}

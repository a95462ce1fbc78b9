//! The transaction of a save, of one aggregate or of many.

use crate::{
    dialect::{Fault, begin_immediate, fault},
    error::SaveError,
    insert::{stored, write},
    tables::TableNames,
    transaction::handed_over,
};
use outbox_core::{Envelope, MessageId, fate::Fate, wake};
use sea_orm::{DatabaseConnection, DatabaseExecutor, TransactionSession, TransactionTrait};
use std::{any::TypeId, future::Future};
use tracing::Instrument;

/// What is saved together.
pub(super) trait Parts<T> {
    /// Writes the roots, and says which events are to be written with them.
    fn write(&mut self, tx: &T) -> impl Future<Output = Result<Vec<Written>, SaveError>>;

    /// Tells every aggregate how far the save is.
    fn tell(&mut self, news: &News<'_>);

    /// The type of the aggregate that raised a message.
    fn owner(&self, message_id: MessageId) -> Option<&'static str>;
}

/// Events whose roots are written, and the tables that they go to.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) tables: TableNames,
    pub(super) envelopes: Vec<Envelope>,
}

/// What a save tells its aggregates.
pub(super) enum News<'a> {
    /// Nothing is stored, and everything is kept for another try.
    Failed(&'a SaveError),
    /// The COMMIT is on its way: until an answer comes, the messages are stored or not.
    CommitSent,
    /// It is stored.
    Committed,
    /// It is written, in a transaction whose commit is not the save's own; its end, where it tells.
    Joined(Option<Fate>),
}

/// Why nothing was written.
enum Failure {
    Error(SaveError),
    /// The INSERT met a message that is there already. Which one it was cannot be asked in this transaction.
    Duplicate(Vec<Written>),
}

impl From<SaveError> for Failure {
    fn from(error: SaveError) -> Self {
        Self::Error(error)
    }
}

/// As [`in_transaction`], in a span of its own.
pub(super) async fn run<C: TransactionTrait, P: Parts<C::Transaction>>(
    db: &C,
    parts: &mut P,
) -> Result<(), SaveError> {
    in_transaction(db, parts).instrument(tracing::debug_span!("outbox.save")).await
}

/// Saves in one transaction, or in a savepoint inside the caller's: a failing save then leaves nothing of itself, even
/// when the caller goes on and commits. Wakes the relays of this process where the commit is its own.
///
/// Dropped while the COMMIT is under way, the aggregates are in doubt: their next save looks for its messages first.
async fn in_transaction<C: TransactionTrait, P: Parts<C::Transaction>>(
    db: &C,
    parts: &mut P,
) -> Result<(), SaveError> {
    let (tx, fate) = handed_over(begin_immediate(db)).await;
    let tx = tx?;
    let raised = match write_all(&tx, parts).await {
        Ok(raised) => raised,
        Err(failure) => {
            // The save's own error says more than a failing rollback, and a lost connection rolls back by itself.
            drop(tx.rollback().await);
            let error = match failure {
                Failure::Error(error) => error,
                Failure::Duplicate(written) => {
                    let message_id = duplicate(db, &written).await;
                    let aggregate_type = parts.owner(message_id).unwrap_or_default();
                    SaveError::AlreadyStored { aggregate_type, message_id }
                }
            };
            parts.tell(&News::Failed(&error));
            return Err(error);
        }
    };
    parts.tell(&News::CommitSent);
    if let Err(error) = tx.commit().await {
        let error = error.into();
        parts.tell(&News::Failed(&error));
        return Err(error);
    }
    let news = if is_pool::<C>() { News::Committed } else { News::Joined(fate) };
    parts.tell(&news);
    if raised && may_commit::<C>() {
        wake::committed();
    }
    Ok(())
}

/// Only a pool is known to begin a transaction of its own. Anything else may be somebody's open transaction.
fn is_pool<C>() -> bool {
    typeid::of::<C>() == TypeId::of::<DatabaseConnection>()
}

/// Whether the save's commit may be the last one. A `DatabaseExecutor` holds a pool or a transaction, and a save that
/// knows only `C: TransactionTrait` cannot ask which: a look of the relay in vain costs less than one that is late.
fn may_commit<C>() -> bool {
    is_pool::<C>() || typeid::of::<C>() == TypeId::of::<DatabaseExecutor<'static>>()
}

/// Writes the roots and then the events, with one INSERT for each set of tables and as the last statement: on
/// PostgreSQL a COMMIT after a failed statement reports success, so nothing that can fail may come after it.
async fn write_all<T: sea_orm::ConnectionTrait, P: Parts<T>>(tx: &T, parts: &mut P) -> Result<bool, Failure> {
    let written = merged(parts.write(tx).await?);
    for Written { tables, envelopes } in &written {
        match write(tx, *tables, envelopes).await {
            Ok(()) => {}
            Err(SaveError::Database(error)) if fault(&error) == Fault::Duplicate => {
                return Err(Failure::Duplicate(written));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(!written.is_empty())
}

/// One list for each set of tables, in the order in which the events were raised.
fn merged(written: Vec<Written>) -> Vec<Written> {
    let mut merged: Vec<Written> = Vec::new();
    for Written { tables, envelopes } in written {
        match merged.iter_mut().find(|known| known.tables == tables) {
            Some(known) => known.envelopes.extend(envelopes),
            None => merged.push(Written { tables, envelopes }),
        }
    }
    merged
}

/// The message whose row is there. Every id was made for its buffer, so whoever stored it was an earlier save of it; but
/// which one it was the database does not say, and an innocent aggregate must not be refused for ever.
async fn duplicate<C: TransactionTrait>(db: &C, written: &[Written]) -> MessageId {
    let first =
        written.iter().flat_map(|written| &written.envelopes).map(|envelope| envelope.message_id).next();
    for Written { tables, envelopes } in written {
        let ids: Vec<_> = envelopes.iter().map(|envelope| envelope.message_id).collect();
        if let Some(found) = first_stored(db, *tables, &ids).await {
            return found;
        }
    }
    first.unwrap_or_default()
}

/// What cannot be found out, because the database is gone or the caller's snapshot is too old, is `None`.
async fn first_stored<C: TransactionTrait>(
    db: &C,
    tables: TableNames,
    ids: &[MessageId],
) -> Option<MessageId> {
    let tx = begin_immediate(db).await.ok()?;
    let found = stored(&tx, tables, ids).await;
    drop(tx.rollback().await);
    found.ok()?.first().copied()
}

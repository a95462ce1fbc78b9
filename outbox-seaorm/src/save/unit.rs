//! Several aggregates, saved as one.

use super::{
    Aggregate, Operation,
    part::Part,
    run::{News, Parts, Written, run},
};
use crate::error::SaveError;
use outbox_core::MessageId;
use sea_orm::{ConnectionTrait, DatabaseTransaction, TransactionTrait};
use std::{fmt, future::Future, pin::Pin};

/// Several aggregates, of any types, that are saved as one: all of them and all of their events, or nothing.
///
/// The roots are written one after the other through SeaORM, in the order in which they were added and with the
/// entities' own hooks. The events of all of them follow in **one** INSERT (more only beyond 2,520 events or 3 MiB, and
/// one for each set of tables), in the order of the aggregates and, within each, in the order in which they were
/// raised.
///
/// ```
/// # use outbox_seaorm::Aggregate;
/// use outbox_seaorm::{SaveError, UnitOfWork};
/// use sea_orm::DatabaseConnection;
///
/// async fn ship<O, S>(db: &DatabaseConnection, order: &mut O, stock: &mut S) -> Result<(), SaveError>
/// where
///     O: Aggregate + Send,
///     S: Aggregate + Send,
/// {
///     UnitOfWork::new().save(order).delete(stock).run(db).await
/// }
/// ```
///
/// What holds for the save of one aggregate holds for all of these: on a pool it is a transaction (`BEGIN IMMEDIATE` on
/// SQLite), in a transaction of yours a savepoint; buffers are emptied only after the commit; when one aggregate is
/// refused, nothing is written and every one of them keeps its root and its events.
///
/// Add the aggregates in one order everywhere: two units that lock the same rows in two orders can deadlock.
///
/// `T` is the transaction that the connection begins, and follows from the argument of [`run`](Self::run).
#[must_use = "nothing is saved before `run`"]
pub struct UnitOfWork<'a, T = DatabaseTransaction> {
    members: Vec<Box<dyn Member<T> + 'a>>,
}

impl<'a, T: ConnectionTrait + TransactionTrait> UnitOfWork<'a, T> {
    /// Without any aggregate.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Inserts a new root, updates a loaded one.
    pub fn save<A: Aggregate + Send>(self, aggregate: &'a mut A) -> Self {
        self.with(aggregate, Operation::Save)
    }

    /// Inserts the root.
    pub fn insert<A: Aggregate + Send>(self, aggregate: &'a mut A) -> Self {
        self.with(aggregate, Operation::Insert)
    }

    /// Updates the root.
    pub fn update<A: Aggregate + Send>(self, aggregate: &'a mut A) -> Self {
        self.with(aggregate, Operation::Update)
    }

    /// Deletes the root.
    pub fn delete<A: Aggregate + Send>(self, aggregate: &'a mut A) -> Self {
        self.with(aggregate, Operation::Delete)
    }

    fn with<A: Aggregate + Send>(mut self, aggregate: &'a mut A, operation: Operation) -> Self {
        self.members.push(Box::new(Part::new(aggregate, operation)));
        self
    }

    /// Saves all of them. Without any there is nothing to do, and no transaction begins.
    ///
    /// # Errors
    ///
    /// As the save of the first aggregate that is refused, whose type the error names. Then nothing was written; all
    /// roots and events are kept, and it can be tried again.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the COMMIT is sent, nothing is stored and everything is kept. Dropped while it is under way,
    /// every aggregate with events is in doubt: its next save looks for its messages first.
    pub async fn run<C: TransactionTrait<Transaction = T>>(mut self, db: &C) -> Result<(), SaveError> {
        if self.members.is_empty() {
            return Ok(());
        }
        run(db, &mut self.members).await
    }
}

impl<T: ConnectionTrait + TransactionTrait> Default for UnitOfWork<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for UnitOfWork<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitOfWork").field("aggregates", &self.members.len()).finish_non_exhaustive()
    }
}

/// Saves many aggregates of one type as one, as [`UnitOfWork`] does: `save_all(&db, &mut orders)`.
///
/// # Errors
///
/// As [`UnitOfWork::run`].
///
/// # Cancel safety
///
/// As [`UnitOfWork::run`].
pub async fn save_all<'a, A: Aggregate + Send + 'a, C: TransactionTrait>(
    db: &C,
    aggregates: impl IntoIterator<Item = &'a mut A>,
) -> Result<(), SaveError> {
    aggregates.into_iter().fold(UnitOfWork::new(), UnitOfWork::save).run(db).await
}

type Writing<'a> = Pin<Box<dyn Future<Output = Result<Vec<Written>, SaveError>> + Send + 'a>>;

/// An aggregate whose type is forgotten.
trait Member<T>: Send {
    fn write<'a>(&'a mut self, tx: &'a T) -> Writing<'a>;
    fn tell(&mut self, news: &News<'_>);
    fn owner(&self, message_id: MessageId) -> Option<&'static str>;
}

impl<A: Aggregate + Send, T: ConnectionTrait + TransactionTrait> Member<T> for Part<'_, A> {
    fn write<'a>(&'a mut self, tx: &'a T) -> Writing<'a> {
        Box::pin(Parts::write(self, tx))
    }

    fn tell(&mut self, news: &News<'_>) {
        Parts::<T>::tell(self, news);
    }

    fn owner(&self, message_id: MessageId) -> Option<&'static str> {
        Parts::<T>::owner(self, message_id)
    }
}

impl<T> Parts<T> for Vec<Box<dyn Member<T> + '_>> {
    async fn write(&mut self, tx: &T) -> Result<Vec<Written>, SaveError> {
        let mut written = Vec::new();
        for member in self {
            written.extend(member.write(tx).await?);
        }
        Ok(written)
    }

    fn tell(&mut self, news: &News<'_>) {
        for member in self {
            member.tell(news);
        }
    }

    fn owner(&self, message_id: MessageId) -> Option<&'static str> {
        self.iter().find_map(|member| member.owner(message_id))
    }
}

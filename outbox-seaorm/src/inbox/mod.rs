//! What a consumer has handled already, so that a repeated message has no second effect.

mod consumer;
mod error;
mod purge;

pub use error::InboxError;
pub use purge::InboxPurge;

use crate::{
    append::Transaction,
    dialect::{Dialect, Fault, fault},
    sql::{Hole, Holes, statement},
    store::retry::again,
    tables::TableNames,
    transaction::OutboxTransaction,
};
use outbox_core::MessageId;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, TransactionSession, TransactionTrait, Value};
use std::collections::BTreeSet;

/// Records that one statement writes at most; two values each.
const MAX_ROWS: usize = 2_500;

/// What came of an effect that must happen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a duplicate had no effect"]
pub enum Once<T> {
    /// The effect happened now, and this is what it returned.
    Done(T),
    /// The consumer had handled the message before; nothing happened.
    Duplicate,
}

impl<T> Once<T> {
    /// Whether nothing happened.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate)
    }

    /// What the effect returned, when it happened.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Duplicate => None,
        }
    }
}

/// The memory of consumers: which messages they have handled.
///
/// Messages are delivered at least once. Where the effect is a change of this database, the inbox makes it happen once:
/// the effect and the record of it are in one transaction, so either both are stored or neither is.
///
/// ```no_run
/// use outbox_core::{HandlerError, MessageContext};
/// use outbox_seaorm::{Inbox, Once, SaveError};
/// use sea_orm::{ConnectionTrait, DatabaseConnection};
///
/// async fn count_order(db: &DatabaseConnection, cx: &MessageContext) -> Result<(), HandlerError> {
///     let counted = Inbox::default()
///         .once_in(db, "statistics", cx.message_id(), async |tx| {
///             tx.execute_unprepared("UPDATE statistics SET orders = orders + 1").await?;
///             Ok::<_, SaveError>(())
///         })
///         .await?;
///     if counted == Once::Duplicate {
///         // Handled before; nothing to do.
///     }
///     Ok(())
/// }
/// ```
///
/// # Rules
///
/// * **The effect uses the transaction that it is given.** What it does on a pool, or outside the database, is not in the
///   transaction, and happens again when the message comes again.
/// * **A consumer is a name,** stored with each message: two consumers handle the same message, one each. It has 1 to
///   200 bytes, no control characters and no white space around it (MySQL would take `"a "` for `"a"`); any other is
///   refused before anything is written. It must survive renames of your code.
/// * **Two copies at once** run the effect once: the second waits for the first one's transaction, and runs the effect
///   if that rolls back.
/// * **What the inbox does not remember is not a duplicate.** Keep records longer than a message can come again; see
///   [`purge`](Self::purge).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inbox {
    tables: TableNames,
}

impl Inbox {
    /// An inbox with these table names.
    pub const fn new(tables: TableNames) -> Self {
        Self { tables }
    }

    /// Runs an effect in the caller's transaction, unless the consumer has handled the message before.
    ///
    /// Record and effect share a savepoint: when the effect fails, neither is left, and the caller may go on. They are
    /// stored when the caller commits.
    ///
    /// On MySQL several copies that wait for one which rolls back can deadlock. The database then undoes the caller's
    /// whole transaction, and the caller repeats it; [`once_in`](Self::once_in) does so by itself. On PostgreSQL above
    /// READ COMMITTED a copy that was handled since the transaction began is a serialisation failure (40001), likewise
    /// to be repeated.
    ///
    /// # Errors
    ///
    /// [`InboxError`] as `E`, or what the effect returns. Nothing was recorded then.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, the transaction can only be rolled back.
    pub async fn once<C, T, E>(
        self,
        tx: &C,
        consumer: &str,
        message_id: MessageId,
        effect: impl AsyncFnOnce(&C::Transaction) -> Result<T, E>,
    ) -> Result<Once<T>, E>
    where
        C: Transaction + TransactionTrait,
        E: From<InboxError>,
    {
        self.once_many(tx, consumer, &[message_id], async |savepoint, _| effect(savepoint).await).await
    }

    /// As [`once`](Self::once), in a transaction of its own, which wakes the relays of this process when it commits.
    ///
    /// On SQLite it begins as the writer (`BEGIN IMMEDIATE`). When another copy is in the way of the record (a deadlock,
    /// a busy SQLite), it begins anew, a few times; the effect has not begun then.
    ///
    /// # Errors
    ///
    /// [`InboxError`] as `E`, or what the effect returns. Nothing was recorded then, unless the answer to the COMMIT was
    /// lost; the message comes again in either case.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the COMMIT is sent, nothing is stored; dropped while it is under way, both or neither.
    pub async fn once_in<T, E>(
        self,
        db: &DatabaseConnection,
        consumer: &str,
        message_id: MessageId,
        effect: impl AsyncFnOnce(&OutboxTransaction) -> Result<T, E>,
    ) -> Result<Once<T>, E>
    where
        E: From<InboxError>,
    {
        consumer::check(consumer)?;
        let begin = || async {
            let tx = OutboxTransaction::begin(db).await?;
            match self.record(&tx, consumer, &[message_id]).await {
                Ok(fresh) => Ok::<_, InboxError>((tx, !fresh.is_empty())),
                Err(error) => {
                    drop(tx.rollback().await);
                    Err(error)
                }
            }
        };
        let (tx, is_new) = again(begin, InboxError::is_conflict).await?;
        if !is_new {
            tx.rollback().await.map_err(InboxError::from)?;
            return Ok(Once::Duplicate);
        }
        ended(effect(&tx).await, tx).await
    }

    /// Runs one effect for many messages in the caller's transaction: for those that the consumer has not handled
    /// before, in the order in which they are given and each once. It is not run when there are none of them.
    ///
    /// As [`once`](Self::once) in everything else. One statement records 2,500 messages; on MySQL each takes its own.
    ///
    /// # Errors
    ///
    /// As [`once`](Self::once); one failure is the failure of all.
    ///
    /// # Cancel safety
    ///
    /// As [`once`](Self::once).
    pub async fn once_many<C, T, E>(
        self,
        tx: &C,
        consumer: &str,
        message_ids: &[MessageId],
        effect: impl AsyncFnOnce(&C::Transaction, &[MessageId]) -> Result<T, E>,
    ) -> Result<Once<T>, E>
    where
        C: Transaction + TransactionTrait,
        E: From<InboxError>,
    {
        consumer::check(consumer)?;
        let savepoint = tx.begin().await.map_err(InboxError::from)?;
        let fresh = match self.record(&savepoint, consumer, message_ids).await {
            Ok(fresh) => fresh,
            Err(error) => {
                // The error says more than a failing rollback, and a deadlock has undone everything already.
                drop(savepoint.rollback().await);
                return Err(error.into());
            }
        };
        if fresh.is_empty() {
            savepoint.rollback().await.map_err(InboxError::from)?;
            return Ok(Once::Duplicate);
        }
        ended(effect(&savepoint, &fresh).await, savepoint).await
    }

    /// Records messages and returns those that were not recorded before, in the order in which they are given.
    async fn record(
        self,
        tx: &impl ConnectionTrait,
        consumer: &str,
        message_ids: &[MessageId],
    ) -> Result<Vec<MessageId>, InboxError> {
        let dialect = Dialect::of(tx.get_database_backend())?;
        let names = self.tables.for_backend(dialect.backend);
        // Sorted: two transactions that record the same messages must do so in one order.
        let ids: Vec<_> = BTreeSet::from_iter(message_ids).into_iter().copied().collect();
        let mut fresh = BTreeSet::new();
        let is_mysql = dialect.backend == DbBackend::MySql;
        for part in ids.chunks(if is_mysql { 1 } else { MAX_ROWS }) {
            let row = |id: &MessageId| vec![Value::from(consumer), id.as_uuid().into()];
            let holes = Holes::default().with("rows", Hole::Rows(part.iter().map(row).collect()));
            let insert = statement(dialect.backend, &names, dialect.record, &holes);
            if is_mysql {
                // No RETURNING. A failed statement leaves the transaction as it was, so a duplicate is simply caught.
                match tx.execute_raw(insert).await {
                    Ok(_) => fresh.extend(part),
                    Err(error) if fault(&error) == Fault::Duplicate => {}
                    Err(error) => return Err(error.into()),
                }
            } else {
                for row in tx.query_all_raw(insert).await? {
                    fresh.insert(MessageId::from(row.try_get::<uuid::Uuid>("", "message_id")?));
                }
            }
        }
        let mut given = message_ids.to_vec();
        given.retain(|id| fresh.remove(id));
        Ok(given)
    }
}

/// Keeps what was done together with its record, or undoes both.
async fn ended<T, E: From<InboxError>>(
    done: Result<T, E>,
    tx: impl TransactionSession,
) -> Result<Once<T>, E> {
    match done {
        Ok(value) => {
            tx.commit().await.map(|()| Once::Done(value)).map_err(|error| InboxError::from(error).into())
        }
        Err(error) => {
            // The effect's own error says more than a failing rollback, and what was not committed is undone anyway.
            drop(tx.rollback().await);
            Err(error)
        }
    }
}

//! A database transaction for a handler: its effect and its progress are stored together, so the effect happens once.

mod finish;
mod lent;

use crate::{tables::TableNames, transaction::OutboxTransaction};
use lent::Lent;
use outbox_core::{
    FromMessage, HandlerError,
    handler::{Call, Requirement},
};
use sea_orm::{DatabaseConnection, DbBackend, DbErr};
use std::{fmt, sync::Arc};
use tokio::sync::Semaphore;

/// Where the transactions of handlers come from; the state that [`Tx`] needs: `.state(Transactions::new(db))`.
///
/// Give it a pool of its own, on the database of the relay's store. A handler that takes [`Tx`] holds one of its
/// connections from [`Tx::begin`] to its end, so it should have as many as the relay's `concurrency`; with fewer, handlers
/// wait for one, within their time limit. On the relay's own pool they could keep the relay from renewing leases.
#[derive(Clone)]
pub struct Transactions {
    db: DatabaseConnection,
    tables: TableNames,
    /// SQLite has one writer, and waiting here is fair; waiting for its lock is not, and ends in an error.
    turn: Option<Arc<Semaphore>>,
}

impl Transactions {
    /// For an outbox with the default table names.
    pub fn new(db: DatabaseConnection) -> Self {
        Self::with_tables(db, TableNames::new())
    }

    /// For an outbox with these table names: those of the relay's store.
    pub fn with_tables(db: DatabaseConnection, tables: TableNames) -> Self {
        let is_sqlite = db.get_database_backend() == DbBackend::Sqlite;
        let turn = is_sqlite.then(|| Arc::new(Semaphore::new(1)));
        Self { db, tables, turn }
    }
}

impl fmt::Debug for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions").field("tables", &self.tables).finish_non_exhaustive()
    }
}

/// A database transaction for one call of a handler, in which its effect and its progress commit together: exactly once,
/// for effects in the database of the outbox.
///
/// ```
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "orders.order-placed", version = 1, ordering = none)]
/// # struct OrderPlaced { order_id: i32 }
/// use outbox_core::{HandlerError, handler};
/// use outbox_seaorm::Tx;
/// use sea_orm::ConnectionTrait;
///
/// #[handler(id = "statistics.count-order")]
/// async fn count_order(_: OrderPlaced, tx: &Tx) -> Result<(), HandlerError> {
///     let tx = tx.begin().await?;
///     tx.execute_unprepared("UPDATE statistics SET orders = orders + 1").await?;
///     Ok(())
/// }
/// # fn main() {}
/// ```
///
/// # Guarantees
///
/// * When the handler returns `Ok`, "this handler has handled this message" is written as the last statement, under the
///   token of the relay's claim, and everything is committed as one. The handler does not run for that message again,
///   also when the relay dies right after it.
/// * When the handler returns an error, panics, is cut off by its time limit, or the relay stops or dies, everything is
///   rolled back.
/// * When the lease was lost to another relay, everything is rolled back: two relays can run a handler for one message at
///   one time, but only the one that owns the row can commit.
/// * When the answer to the COMMIT is lost, the row is tried again, and what is stored decides: the handler runs again if
///   and only if its effect is not there.
/// * It is READ COMMITTED, whatever the server's default is. The rows that it raises wake the relays of this process, and
///   name this message as their cause.
///
/// # Rules
///
/// * **The effect uses the transaction.** What a handler does elsewhere, in another database or a mail, may happen again.
/// * **It begins at the first [`begin`](Self::begin).** A handler that never calls it has nothing to commit and is marked
///   as others are.
/// * **The handler cannot end it**, because it is only lent. A `COMMIT` or `ROLLBACK` that is sent as text, or a statement
///   with which MySQL commits (`CREATE TABLE`), is found out: nobody can tell then what is stored, so the message is a
///   dead letter of class `uncertain`. An error that the handler does not return but passes over may have spoiled the
///   transaction (always on PostgreSQL); then the attempt fails.
/// * **It ends with the handler.** A task that the handler has spawned and that still holds the argument makes the attempt
///   fail; await it.
/// * **It is short.** It holds locks until the handler returns, and what the handler waits for prolongs that.
/// * **On SQLite it is the only writer.** It begins IMMEDIATE: nobody else can write until it ends, the relay's own marks
///   and renewals included, and `Transactions` lets one handler at a time begin. A handler that writes through another
///   connection as well waits for itself. One that takes longer than the relay's lease loses it and is undone.
/// * All arguments of one call share one transaction, those within extractors of your own included.
///
/// Errors are as everywhere: a deadlock or a serialisation failure that the handler returns with `?` is transient, and the
/// message is tried again.
pub struct Tx(Arc<Lent>);

impl Tx {
    /// The transaction; the first call begins it.
    ///
    /// # Errors
    ///
    /// The database's error: no connection became free, or none could be made. It can be called again.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, nothing has begun.
    pub async fn begin(&self) -> Result<&OutboxTransaction, DbErr> {
        self.0.begin().await
    }
}

impl FromMessage for Tx {
    fn from_message(call: &Call) -> Result<Self, HandlerError> {
        let missing = || HandlerError::transient("no outbox_seaorm::Transactions were given to the router");
        let transactions = call.state::<Transactions>().ok_or_else(missing)?;
        call.finish_with(|| Lent::of(transactions)).map(Self)
    }

    fn requires() -> Option<Requirement> {
        Some(Requirement::state::<Transactions>())
    }
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("begun", &self.0.is_begun()).finish()
    }
}

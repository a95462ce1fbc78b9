//! Events without an aggregate's save.

use crate::{
    error::SaveError,
    insert::{write, write_once},
    tables::TableNames,
};
use outbox_core::{Envelope, MessageId, OutboxEvent, RowId};
use sea_orm::{ConnectionTrait, TransactionSession};

/// A connection that is surely a transaction. A pool is not: an event outside a transaction could be stored without
/// its change, or the other way round.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transaction: an event, or the record of a handled message, is only stored together with the change that it belongs to",
    label = "a transaction is needed here",
    note = "begin one (`let tx = db.begin().await?`), make the change on `&tx` and pass `&tx` here, then commit"
)]
pub trait Transaction: ConnectionTrait + TransactionSession {}

#[diagnostic::do_not_recommend]
impl<T: ConnectionTrait + TransactionSession> Transaction for T {}

/// Appends an event within the caller's transaction, to the tables with the default names.
///
/// It is stored if and only if the transaction commits. See [`Outbox::append`].
///
/// # Errors
///
/// As [`Outbox::append`].
pub async fn append<E: OutboxEvent>(tx: &impl Transaction, event: E) -> Result<MessageId, SaveError> {
    Outbox::default().append(tx, event).await
}

/// What [`Outbox::append_once`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The message's row, whoever wrote it.
    pub row_id: RowId,
    /// Whether this call wrote it.
    pub is_new: bool,
}

/// Writes events into one set of tables.
///
/// ```no_run
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "stock.level-fell", version = 1, ordering = none)]
/// # struct LevelFell { sku: String }
/// use outbox_seaorm::{Outbox, TableNames};
/// use sea_orm::TransactionTrait;
///
/// const TABLES: TableNames = TableNames::new().prefix("shop_");
///
/// # async fn f(db: sea_orm::DatabaseConnection) -> Result<(), Box<dyn std::error::Error>> {
/// let tx = db.begin().await?;
/// // … change the stock on `&tx` …
/// Outbox::new(TABLES).append(&tx, LevelFell { sku: "A-1".into() }).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    tables: TableNames,
}

impl Outbox {
    /// An outbox with these table names.
    pub const fn new(tables: TableNames) -> Self {
        Self { tables }
    }

    /// Appends an event within the caller's transaction.
    ///
    /// An event with `ordering = key(field)` locks its key until the transaction ends. The relays of this process are
    /// not woken, because the commit is the caller's; they find the row when they poll, or call
    /// [`wake::committed`](outbox_core::wake::committed) after it.
    ///
    /// # Errors
    ///
    /// When the event cannot be stored or is ordered by an aggregate, or the database refuses. On PostgreSQL the
    /// transaction can then only be rolled back.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the row may be written in the transaction; roll it back.
    pub async fn append<E: OutboxEvent>(
        &self,
        tx: &impl Transaction,
        event: E,
    ) -> Result<MessageId, SaveError> {
        let envelope = Envelope::new(&event)?;
        let id = envelope.message_id;
        self.append_envelopes(tx, &[envelope]).await?;
        Ok(id)
    }

    /// As [`append`](Self::append), in order with all events that are appended under the same key. The key is locked
    /// until the transaction ends.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub async fn append_ordered<E: OutboxEvent>(
        &self,
        tx: &impl Transaction,
        key: &str,
        event: E,
    ) -> Result<MessageId, SaveError> {
        let envelope = Envelope::new(&event)?.with_ordering_key(key);
        let id = envelope.message_id;
        self.append_envelopes(tx, &[envelope]).await?;
        Ok(id)
    }

    /// As [`append`](Self::append), for events with headers, a correlation id and the like, and for several at once
    /// (they are written with one INSERT).
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub async fn append_envelopes(
        &self,
        tx: &impl Transaction,
        envelopes: &[Envelope],
    ) -> Result<(), SaveError> {
        write(tx, self.tables, envelopes).await
    }

    /// Appends a message under an id of the caller's, once: when the id is stored already nothing is written, and
    /// the first one's row is returned. For producers that may repeat themselves.
    ///
    /// A message that was dispatched and purged in between is written again.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub async fn append_once<E: OutboxEvent>(
        &self,
        tx: &impl Transaction,
        message_id: MessageId,
        event: E,
    ) -> Result<Appended, SaveError> {
        let envelope = Envelope::with_id(message_id, &event)?;
        let (row_id, is_new) = write_once(tx, self.tables, &envelope).await?;
        Ok(Appended { row_id, is_new })
    }
}

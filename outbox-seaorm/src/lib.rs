//! A transactional outbox for SeaORM: saving an aggregate writes its rows **and** the events that it raised in one
//! transaction, and a relay takes the committed rows to their handlers. PostgreSQL, MySQL/MariaDB and SQLite, in one
//! build.
//!
//! # Layout
//!
//! In the order in which an event passes through:
//!
//! 1. [`Aggregate`] and [`SaveError`]: the save; [`append`] and [`Outbox`]: events without an aggregate;
//!    [`UnitOfWork`]: several aggregates saved as one; [`OutboxTransaction`]: several saves in one transaction;
//!    [`hooks`]: events of plain entities;
//! 2. [`migration`], [`TableNames`]: the tables;
//! 3. [`SeaOrmStore`]: the relay's side, one file for each thing that happens to a row; `notify`: wake-ups from process to
//!    process;
//! 4. [`Tx`], [`Transactions`]: a transaction for a handler, so that its effect in this database happens once;
//! 5. [`Inbox`]: the consumer's memory, so that a repeated message has no second effect;
//! 6. [`doctor`]: what is wrong, and the command that mends it.
//!
//! # Features
//!
//! `postgres`, `mysql` and `sqlite` add SeaORM's drivers. Choose a runtime (`runtime-tokio…`) on your own `sea-orm`
//! dependency.

#[cfg(not(any(feature = "postgres", feature = "mysql", feature = "sqlite")))]
compile_error!(
    "outbox-seaorm needs to know its databases: enable one or more of its features `postgres`, `mysql` and `sqlite`"
);

// save
mod append;
mod error;
pub mod hooks;
mod insert;
mod save;
mod transaction;

// tables
pub mod migration;
mod tables;

// relay
mod convert;
#[cfg(feature = "postgres")]
pub mod notify;
mod store;

// handle, consume
mod handle;
mod inbox;

// operate
pub mod doctor;

// SQL
mod dialect;
mod sql;

#[cfg(feature = "testing")]
pub mod testing;

#[doc(hidden)]
pub mod __private;

pub use append::{Appended, Outbox, Transaction, append};
pub use error::SaveError;
pub use handle::{Transactions, Tx};
pub use inbox::{Inbox, InboxError, InboxPurge, Once};
pub use migration::{MigrationState, migrate, migration_states, migrations, migrations_for};
pub use outbox_core::EventBuffer;
pub use save::{Aggregate, UnitOfWork, save_all};
pub use store::SeaOrmStore;
pub use tables::TableNames;
pub use transaction::OutboxTransaction;

/// Makes saving a struct's SeaORM root and the events that it has raised one act.
///
/// The struct holds the root (an `ActiveModel` or `ActiveModelEx`), the buffer of raised events, and whatever else the
/// domain needs (filled with `Default`). The derive gives it
///
/// * `new(root)`, and `From` the model that SeaORM loads;
/// * `raise(event)`, `try_raise(event)`, and `raise_with(|saved| event)` for events that need a generated key;
/// * `insert`, `update`, `save` and `delete`, with the same bound as SeaORM's own: a pool (they begin a transaction) or
///   a transaction (they join it through a savepoint);
/// * `Deref` to the root, so that its fields can be read and set.
///
/// ```
/// # mod orders {
/// #     use sea_orm::entity::prelude::*;
/// #     #[sea_orm::model]
/// #     #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
/// #     #[sea_orm(table_name = "orders")]
/// #     pub struct Model { #[sea_orm(primary_key)] pub id: i32, pub status: String }
/// #     impl ActiveModelBehavior for ActiveModel {}
/// # }
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "orders.order-placed", version = 1, ordering = none)]
/// # struct OrderPlaced { order_id: i32 }
/// use outbox_seaorm::{Aggregate, EventBuffer};
/// use sea_orm::Set;
///
/// #[derive(Debug, Aggregate)]
/// #[aggregate(name = "order")]
/// struct Order {
///     #[aggregate(root)]
///     root: orders::ActiveModel,
///     #[aggregate(events)]
///     events: EventBuffer<orders::Model>,
/// }
///
/// impl Order {
///     fn place() -> Self {
///         let mut order = Order::new(orders::ActiveModel { status: Set("placed".into()), ..Default::default() });
///         order.raise_with(|saved| OrderPlaced { order_id: saved.id });
///         order
///     }
/// }
///
/// async fn place(db: &sea_orm::DatabaseConnection) -> Result<(), outbox_seaorm::SaveError> {
///     Order::place().save(db).await
/// }
/// # fn main() {}
/// ```
///
/// # Guarantees
///
/// * The events are stored if and only if the root is. They are the last statement before the commit.
/// * The buffer is emptied only after the commit. A failed or cancelled save keeps root and events, with the same
///   message ids, so that trying again cannot duplicate.
/// * A save whose COMMIT was answered by nobody is *in doubt*: the next save looks for its messages first.
/// * After a save inside a plain transaction of yours, the next save checks that the messages are there: where the
///   transaction was rolled back it is [`SaveError::RolledBack`], never a silent no-op.
/// * What would lose events does not compile: cloning the aggregate, moving its root out, handing it to
///   `Entity::insert`, saving it on something that cannot begin a transaction.
///
/// One save at a time on a transaction: SeaORM's savepoints act on the depth, not on a handle.
///
/// # Attributes
///
/// | attribute | meaning | default |
/// | --- | --- | --- |
/// | `name = "order"` | stored as `aggregate_type`; outlives renames of the struct | required |
/// | `tables = TABLES` | a [`TableNames`] constant | the default names |
/// | `version = column` | an integer column of the root that counts its saves; a root that somebody else has saved since it was loaded is [`SaveError::Stale`]. One more statement a save | none |
/// | `crate = ::path` | where `outbox_seaorm` is found | `::outbox_seaorm` |
/// | `#[aggregate(root)]` | on the field with the `ActiveModel` or `ActiveModelEx` | required |
/// | `#[aggregate(events)]` | on the field written `EventBuffer<your::Model>` (`ModelEx` for an `ActiveModelEx`) | required |
pub use outbox_derive::Aggregate;

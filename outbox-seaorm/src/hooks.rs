//! Events of plain entities, from inside SeaORM's own hooks.
//!
//! For entities that are saved by many hands and have no aggregate around them. A hook sees the saved model and not
//! what the caller meant, so it can tell that something was created, changed or deleted, and not why. SeaORM runs no
//! hook at all for `Entity::insert`, `insert_many`, `update_many`, `delete_many` and raw SQL, and no `after_save` for
//! `update_without_returning`: for those there is no event.
//!
//! ```
//! use outbox_core::OutboxEvent;
//! use outbox_seaorm::hooks;
//! use schemars::JsonSchema;
//! use sea_orm::entity::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
//! #[outbox(name = "catalog.product-listed", version = 1, ordering = none)]
//! pub struct ProductListed {
//!     pub id: i32,
//! }
//!
//! #[sea_orm::model]
//! #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
//! #[sea_orm(table_name = "products")]
//! pub struct Model {
//!     #[sea_orm(primary_key)]
//!     pub id: i32,
//!     pub name: String,
//! }
//!
//! #[async_trait::async_trait]
//! impl ActiveModelBehavior for ActiveModel {
//!     async fn before_save<C: ConnectionTrait>(self, db: &C, _insert: bool) -> Result<Self, DbErr> {
//!         hooks::require_transaction(db, "product")?; // before anything is written
//!         Ok(self)
//!     }
//!
//!     async fn after_save<C: ConnectionTrait>(model: Model, db: &C, insert: bool) -> Result<Model, DbErr> {
//!         if insert {
//!             hooks::raise(db, "product", model.id, &ProductListed { id: model.id }).await?;
//!         }
//!         Ok(model)
//!     }
//! }
//! # fn main() {}
//! ```

use crate::{error::SaveError, insert::write, tables::TableNames, transaction::OutboxTransaction};
use outbox_core::{Envelope, MessageId, OutboxEvent};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};
use std::any::TypeId;

/// Refuses a connection that is not surely a transaction. Call it first in `before_save` and `before_delete`: in
/// `after_save` on a pool the row is stored already.
///
/// Transactions are `DatabaseTransaction` (which SeaORM also uses for the saves of an `ActiveModelEx` on a pool) and
/// [`OutboxTransaction`].
///
/// # Errors
///
/// A `DbErr::Custom` that says what to do, when `C` is a pool or something unknown.
pub fn require_transaction<C: ConnectionTrait>(_db: &C, entity: &str) -> Result<(), DbErr> {
    let connection = typeid::of::<C>();
    if [TypeId::of::<DatabaseTransaction>(), TypeId::of::<OutboxTransaction>()].contains(&connection) {
        return Ok(());
    }
    Err(DbErr::Custom(format!(
        "{entity} raises events when it is saved or deleted, so it needs a transaction, and {} is none: begin one and pass it. Nothing was written",
        std::any::type_name::<C>()
    )))
}

/// Stores an event of an entity, within the transaction that the hook runs in, to the tables with the default names.
///
/// # Errors
///
/// As [`require_transaction`], and as [`append`](crate::append()). The hook must pass it on, so that the save fails.
pub async fn raise<C: ConnectionTrait, E: OutboxEvent>(
    db: &C,
    entity: &str,
    id: impl ToString + Send,
    event: &E,
) -> Result<MessageId, DbErr> {
    raise_to(TableNames::new(), db, entity, id, event).await
}

/// As [`raise`], to other tables.
///
/// # Errors
///
/// As [`raise`].
pub async fn raise_to<C: ConnectionTrait, E: OutboxEvent>(
    tables: TableNames,
    db: &C,
    entity: &str,
    id: impl ToString + Send,
    event: &E,
) -> Result<MessageId, DbErr> {
    require_transaction(db, entity)?;
    let envelope = Envelope::new(event).map_err(SaveError::from)?.with_aggregate(entity, &id.to_string());
    let message_id = envelope.message_id;
    write(db, tables, &[envelope]).await?;
    Ok(message_id)
}

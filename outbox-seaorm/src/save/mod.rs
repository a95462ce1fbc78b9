//! The save of aggregates: their rows and their events, or nothing.
//!
//! Every save is [`run`]: begin, write each root through SeaORM, then all events as the last statement, commit. What is
//! saved is a [`Part`] (one aggregate, the methods of the derive) or many of them (a [`UnitOfWork`]). SeaORM's own save
//! is called in `Aggregate::write_root`, which the derive writes: an `ActiveModelEx` has its saves as inherent methods,
//! which only a macro can name.

mod key;
mod part;
mod prepare;
mod root;
mod run;
mod unit;
mod version;

pub use root::{Operation, require_deleted};
pub use unit::{UnitOfWork, save_all};
pub use version::version_number;

use crate::{error::SaveError, tables::TableNames};
use outbox_core::EventBuffer;
use part::Part;
use sea_orm::{ActiveModelTrait, ConnectionTrait, IntoActiveModel, ModelTrait, TransactionTrait};
use std::future::Future;

/// A struct whose root is saved together with the events that it has raised. Implement it with
/// `#[derive(Aggregate)]`.
///
/// It says what code over all aggregates needs to know, and is the bound of [`UnitOfWork`] and [`save_all`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an aggregate",
    label = "not an aggregate",
    note = "derive it: `#[derive(Aggregate)]` with `#[aggregate(name = \"...\")]`, a field `#[aggregate(root)]` and a field `#[aggregate(events)]`"
)]
pub trait Aggregate {
    /// What SeaORM gives back after a save.
    type Model: ModelTrait + IntoActiveModel<Self::Root>;
    /// What SeaORM saves.
    type Root: ActiveModelTrait<Entity = <Self::Model as ModelTrait>::Entity> + Send + Sync;
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

    // The steps of a save. No methods: they would stand before those of the root, which are found through `Deref`.

    #[doc(hidden)]
    fn parts(aggregate: &Self) -> (&Self::Root, &EventBuffer<Self::Model>);

    #[doc(hidden)]
    fn parts_mut(aggregate: &mut Self) -> (&mut Self::Root, &mut EventBuffer<Self::Model>);

    /// Calls SeaORM's own `insert`, `update`, `save` or `delete`. What is deleted comes back as it was.
    #[doc(hidden)]
    fn write_root<T: ConnectionTrait + TransactionTrait>(
        root: Self::Root,
        tx: &T,
        operation: Operation,
    ) -> impl Future<Output = Result<Self::Model, SaveError>> + Send;
}

/// No aggregate implements it: a clone would lose its events or send them twice.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an aggregate cannot be cloned: its raised events would be lost or sent twice",
    label = "cannot be cloned",
    note = "to copy only the root, dereference first: `(*aggregate).clone()`"
)]
pub trait CloneableAggregate<'a> {}

/// Saves one aggregate.
///
/// # Errors
///
/// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
pub async fn save<A: Aggregate, C: TransactionTrait>(
    aggregate: &mut A,
    db: &C,
    operation: Operation,
) -> Result<(), SaveError> {
    run::run(db, &mut Part::new(aggregate, operation)).await
}

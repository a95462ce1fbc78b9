//! The root of an aggregate: whether it is stored, and its lock.

use super::Aggregate;
use crate::error::SaveError;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbBackend, DbErr, DeleteResult, EntityTrait, Iterable,
    ModelTrait, PrimaryKeyToColumn, PrimaryKeyTrait, QueryFilter, QuerySelect, Select, sea_query::LockType,
};

/// What a save does to its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// INSERT.
    Insert,
    /// UPDATE, or nothing where no column changed.
    Update,
    /// SeaORM's own save of a loaded root: an UPDATE that an `ActiveModelEx` hands on to its children, new ones
    /// included. A new root is inserted.
    Save,
    /// DELETE.
    Delete,
}

type PrimaryKey<A> = <<A as ActiveModelTrait>::Entity as EntityTrait>::PrimaryKey;

/// Whether the root was loaded or saved before: its whole key is unchanged. SeaORM's own `save` asks whether the key is
/// set, which is wrong for keys that the client makes.
pub(super) fn is_loaded<A: ActiveModelTrait>(root: &A) -> bool {
    PrimaryKey::<A>::iter().all(|key| root.get(key.into_column()).is_unchanged())
}

/// SeaORM deletes a row that is gone with success; an event that tells of it would be wrong.
///
/// # Errors
///
/// [`SaveError::Gone`] when no row was deleted.
pub fn require_deleted<A: Aggregate>(deleted: &DeleteResult) -> Result<(), SaveError> {
    match deleted.rows_affected {
        0 => Err(SaveError::Gone { aggregate_type: A::AGGREGATE_TYPE }),
        _ => Ok(()),
    }
}

/// Looks at a root that the save itself does not write, before its events are stored: it must be there, and its row is
/// locked when an event keeps an order.
///
/// A root without a changed column (its child may have one) is passed over by SeaORM. Two such saves would take their
/// ids in one order and commit in the other, and one of a root that is gone would succeed.
pub(super) async fn require_root<A: Aggregate>(
    tx: &impl ConnectionTrait,
    root: &A::Root,
    operation: Operation,
    is_ordered: bool,
) -> Result<(), SaveError> {
    let is_written = match operation {
        Operation::Insert | Operation::Delete => true,
        Operation::Update | Operation::Save => {
            <<A::Model as ModelTrait>::Entity as EntityTrait>::Column::iter()
                .any(|column| root.get(column).is_set())
        }
    };
    if is_written {
        return Ok(());
    }
    let mut select = one_column::<A::Model, A::Root>(root, None)?;
    // SQLite has one writer, and this transaction began as it.
    if is_ordered && tx.get_database_backend() != DbBackend::Sqlite {
        select = select.lock(LockType::Update);
    }
    let found = select.into_tuple::<KeyValue<A::Model>>().one(tx).await?;
    found.map(drop).ok_or(SaveError::Gone { aggregate_type: A::AGGREGATE_TYPE })
}

type KeyValue<M> = <<<M as ModelTrait>::Entity as EntityTrait>::PrimaryKey as PrimaryKeyTrait>::ValueType;

/// Selects the root's stored row by its key: one column of it, or the key itself.
pub(super) fn one_column<M, R>(
    root: &R,
    column: Option<<M::Entity as EntityTrait>::Column>,
) -> Result<Select<M::Entity>, DbErr>
where
    M: ModelTrait,
    R: ActiveModelTrait<Entity = M::Entity>,
{
    let mut select = M::Entity::find().select_only();
    if let Some(column) = column {
        select = select.column(column);
    }
    for key in <M::Entity as EntityTrait>::PrimaryKey::iter() {
        let key = key.into_column();
        let value = root.get(key).into_value().ok_or(DbErr::AttrNotSet(format!("{key:?}")))?;
        if column.is_none() {
            select = select.column(key);
        }
        select = select.filter(key.eq(value));
    }
    Ok(select)
}

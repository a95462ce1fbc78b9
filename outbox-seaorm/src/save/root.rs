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
    /// DELETE.
    Delete,
}

type PrimaryKey<A> = <<A as ActiveModelTrait>::Entity as EntityTrait>::PrimaryKey;

/// Whether the root was loaded or saved before: its whole key is unchanged. SeaORM's own `save` asks whether the key is
/// set, which is wrong for keys that the client makes.
pub fn is_loaded<A: ActiveModelTrait>(root: &A) -> bool {
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

/// Locks the root's row unless the save itself is about to: a root without a changed column (its child may have one)
/// is not written by SeaORM, and two such saves would take their ids in one order and commit in the other.
pub(super) async fn lock_root<M, R>(
    tx: &impl ConnectionTrait,
    root: &R,
    operation: Operation,
) -> Result<(), SaveError>
where
    M: ModelTrait,
    R: ActiveModelTrait<Entity = M::Entity>,
{
    let written = match operation {
        Operation::Insert | Operation::Delete => true,
        Operation::Update => {
            <M::Entity as EntityTrait>::Column::iter().any(|column| root.get(column).is_set())
        }
    };
    // SQLite has one writer, and this transaction began as it.
    if written || tx.get_database_backend() == DbBackend::Sqlite {
        return Ok(());
    }
    let locked = one_column::<M, R>(root, None)?.lock(LockType::Update);
    match locked.into_tuple::<KeyValue<M>>().one(tx).await? {
        Some(_) => Ok(()),
        None => {
            Err(DbErr::RecordNotFound("the root of the aggregate is not there any more".to_owned()).into())
        }
    }
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

//! Optimistic versions: a column of the root that counts its saves.

use super::{Aggregate, Operation, root::one_column};
use crate::error::SaveError;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ColumnType, ConnectionTrait, DbErr, EntityTrait, ModelTrait, QuerySelect,
    Value, sea_query::LockType,
};
use std::str::FromStr;

type Column<M> = <<M as ModelTrait>::Entity as EntityTrait>::Column;

/// What a version column holds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot count the saves of an aggregate",
    label = "not a version column",
    note = "`#[aggregate(version = ...)]` names an integer column of the root, of at most 64 bits with a sign or 32 without"
)]
pub trait VersionNumber {
    /// As it is stored with events.
    fn number(self) -> i64;
}

#[diagnostic::do_not_recommend]
impl<T: Into<i64>> VersionNumber for T {
    fn number(self) -> i64 {
        self.into()
    }
}

/// A version as it is stored with events.
#[must_use]
pub fn version_number(version: impl VersionNumber) -> Option<i64> {
    Some(version.number())
}

/// Locks the root's row, refuses a root that somebody else has saved since it was loaded, and counts this save. A new
/// root starts at 1 unless it says otherwise.
pub(super) async fn advance<A: Aggregate>(
    tx: &impl ConnectionTrait,
    root: &mut A::Root,
    column: &str,
    operation: Operation,
) -> Result<(), SaveError> {
    let column = Column::<A::Model>::from_str(column).map_err(|_| {
        DbErr::Custom(format!("{} has no column {column} to count its saves", A::AGGREGATE_TYPE))
    })?;
    let loaded = root.get(column).into_value();
    if operation == Operation::Insert {
        if loaded.is_none() {
            root.try_set(column, of_type(column.def().get_column_type(), 1))?;
        }
        return Ok(());
    }
    let loaded = loaded.ok_or_else(|| DbErr::AttrNotSet(format!("{column:?}")))?;
    // SQLite has no row locks; this transaction began as its writer.
    let select = one_column::<A::Model, A::Root>(root, Some(column))?.lock(LockType::Update);
    let aggregate_type = A::AGGREGATE_TYPE;
    let stored = select.into_json().one(tx).await?.ok_or(SaveError::Gone { aggregate_type })?;
    // As JSON, because the drivers read no integer as one of another width.
    let stored = stored.as_object().and_then(|row| row.values().next()?.as_i64());
    let stored = stored.ok_or_else(|| DbErr::Type(format!("{column:?} is no integer")))?;
    let loaded = number(&loaded).ok_or_else(|| DbErr::Type(format!("{column:?} is no integer")))?;
    if stored != loaded {
        return Err(SaveError::Stale { aggregate_type, loaded, stored });
    }
    if operation != Operation::Delete {
        root.try_set(column, of_type(column.def().get_column_type(), stored + 1))?;
    }
    Ok(())
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::TinyInt(n) => n.map(i64::from),
        Value::SmallInt(n) => n.map(i64::from),
        Value::Int(n) => n.map(i64::from),
        Value::BigInt(n) => *n,
        Value::TinyUnsigned(n) => n.map(i64::from),
        Value::SmallUnsigned(n) => n.map(i64::from),
        Value::Unsigned(n) => n.map(i64::from),
        _ => None,
    }
}

/// The number as the column's type; one that does not fit is NULL, which the database refuses.
fn of_type(column: &ColumnType, number: i64) -> Value {
    match column {
        ColumnType::TinyInteger => Value::TinyInt(number.try_into().ok()),
        ColumnType::SmallInteger => Value::SmallInt(number.try_into().ok()),
        ColumnType::Integer => Value::Int(number.try_into().ok()),
        ColumnType::TinyUnsigned => Value::TinyUnsigned(number.try_into().ok()),
        ColumnType::SmallUnsigned => Value::SmallUnsigned(number.try_into().ok()),
        ColumnType::Unsigned => Value::Unsigned(number.try_into().ok()),
        _ => Value::BigInt(Some(number)),
    }
}

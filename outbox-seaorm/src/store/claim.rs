//! pending → claimed.

use super::SeaOrmStore;
use crate::{
    convert::{claimed_row, due_at, store_error, unreadable_row},
    dialect::{Claim, begin_relay},
    sql::Holes,
};
use outbox_core::{
    StoreError,
    store::{ClaimRequest, Claimed},
};
use sea_orm::{ConnectionTrait, DbErr, QueryResult};

pub(super) async fn claim(store: &SeaOrmStore, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
    let holes = store.claim_holes(request);
    let claimed = match store.dialect.claim {
        Claim::One(sql) => store.db.query_all_raw(store.statement(sql, &holes)).await,
        Claim::Two { select, update } => select_then_update(store, select, update, holes).await,
    };
    let claimed = claimed.map_err(|error| store_error("claim rows", error))?;
    let counted = u32::from(matches!(store.dialect.claim, Claim::Two { .. }));
    let mut rows = Vec::with_capacity(claimed.len());
    let mut unreadable = Vec::new();
    for row in &claimed {
        match due_at(row).and_then(|due_at| Ok((due_at, claimed_row(row)?))) {
            Ok((due_at, mut row)) => {
                row.attempts += counted;
                row.claims += i64::from(counted);
                rows.push((due_at, row));
            }
            Err(error) => unreadable.push(unreadable_row(row, counted, &error)?),
        }
    }
    rows.sort_by_key(|(due_at, row)| (*due_at, row.id));
    Ok(Claimed { rows: rows.into_iter().map(|(_, row)| row).collect(), unreadable })
}

/// Returns the rows as they were before the claim.
async fn select_then_update(
    store: &SeaOrmStore,
    select: &str,
    update: &str,
    holes: Holes,
) -> Result<Vec<QueryResult>, DbErr> {
    let tx = begin_relay(&store.db, store.dialect.backend).await?;
    let rows = tx.query_all_raw(store.statement(select, &holes)).await?;
    let ids = rows.iter().map(|row| row.try_get::<i64>("", "id")).collect::<Result<Vec<_>, _>>()?;
    if !ids.is_empty() {
        let holes = holes.with("ids", store.dialect.ids(ids.into_iter()));
        store.execute(&tx, update, &holes).await?;
    }
    tx.commit().await?;
    Ok(rows)
}

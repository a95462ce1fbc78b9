//! pending → claimed.

use super::SeaOrmStore;
use crate::{
    convert::{claimed_row, due_at, store_error},
    dialect::{Claim, begin_relay},
    sql::Holes,
};
use outbox_core::{StoreError, row::ClaimedRow, store::ClaimRequest};
use sea_orm::{ConnectionTrait, DbErr, QueryResult};

pub(super) async fn claim(
    store: &SeaOrmStore,
    request: &ClaimRequest<'_>,
) -> Result<Vec<ClaimedRow>, StoreError> {
    let holes = store.claim_holes(request);
    let claimed = match store.dialect.claim {
        Claim::One(sql) => store.db.query_all_raw(store.statement(sql, &holes)).await,
        Claim::Two { select, update } => select_then_update(store, select, update, holes).await,
    };
    let claimed = claimed.map_err(|error| store_error("claim rows", error))?;
    let returns_old = matches!(store.dialect.claim, Claim::Two { .. });
    let mut rows = Vec::with_capacity(claimed.len());
    for row in &claimed {
        let mut claimed = claimed_row(row)?;
        if returns_old {
            claimed.attempts += 1;
            claimed.claims += 1;
        }
        rows.push((due_at(row)?, claimed));
    }
    rows.sort_by_key(|(due_at, row)| (*due_at, row.id));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
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

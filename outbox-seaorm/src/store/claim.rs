//! pending → claimed.

use super::SeaOrmStore;
use crate::{
    convert::{add_claimed, claimed_row, due_at, store_error},
    dialect::Claim,
    sql::Holes,
};
use outbox_core::{
    StoreError,
    store::{ClaimRequest, Claimed, Route},
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult};

pub(super) async fn claim(store: &SeaOrmStore, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
    let holes = store.claim_holes(request);
    let claimed = match store.dialect.claim {
        Claim::One(sql) => store.query(sql, &holes).await,
        Claim::Several { routes, select } => several(store, request, [routes, select], holes).await,
    };
    let mut found = claimed.map_err(|error| store_error("claim rows", error))?;
    // Neither RETURNING nor several selects promise an order.
    found.sort_by_cached_key(|row| (due_at(row).ok(), row.try_get_by_index::<i64>(0).ok()));
    let counted = u32::from(matches!(store.dialect.claim, Claim::Several { .. }));
    let mut claimed = Claimed::default();
    for row in &found {
        add_claimed(&mut claimed, row, due_at(row).and_then(|_| claimed_row(row)), counted)?;
    }
    Ok(claimed)
}

/// Returns the rows as they were before the claim.
async fn several(
    store: &SeaOrmStore,
    request: &ClaimRequest<'_>,
    [routes, select]: [&'static str; 2],
    holes: Holes,
) -> Result<Vec<QueryResult>, DbErr> {
    let tx = store.begin().await?;
    let mut rows = Vec::new();
    for route in due_routes(store, &tx, request, routes, &holes).await? {
        let taken = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let Some(rest) = request.limit.checked_sub(taken).filter(|rest| *rest > 0) else { break };
        let holes = store
            .dialect
            .at(request.now)
            .with("event_type", route.event_type)
            .with("event_version", i32::from(route.event_version))
            .with("limit", i64::from(rest));
        rows.extend(tx.query_all_raw(store.statement(select, &holes)).await?);
    }
    let ids = rows.iter().map(|row| row.try_get::<i64>("", "id")).collect::<Result<Vec<_>, _>>()?;
    if !ids.is_empty() {
        let holes = holes.with("ids", store.dialect.ids(ids.into_iter()));
        store.execute(&tx, store.dialect.claim_ids, &holes).await?;
    }
    tx.commit().await?;
    Ok(rows)
}

/// The events that have due rows. Of a single one nothing needs to be asked.
async fn due_routes(
    store: &SeaOrmStore,
    tx: &DatabaseTransaction,
    request: &ClaimRequest<'_>,
    routes: &str,
    holes: &Holes,
) -> Result<Vec<Route>, DbErr> {
    if let [only] = request.routes {
        return Ok(vec![*only]);
    }
    let mut due = Vec::new();
    for row in tx.query_all_raw(store.statement(routes, holes)).await? {
        let place = usize::try_from(row.try_get::<i64>("", "n")?).unwrap_or(usize::MAX);
        due.extend(request.routes.get(place).copied());
    }
    Ok(due)
}

//! claimed → claimed for longer, under the token of the claim.

use super::{SeaOrmStore, retried};
use crate::convert::store_error;
use outbox_core::{RowId, StoreError, row::LeaseToken, store::Renewal};
use std::collections::{BTreeMap, BTreeSet};

pub(super) async fn renew(
    store: &SeaOrmStore,
    renewal: &Renewal<'_>,
) -> Result<Vec<(RowId, LeaseToken)>, StoreError> {
    let mut claims: BTreeMap<LeaseToken, BTreeSet<RowId>> = BTreeMap::new();
    for (id, token) in renewal.rows {
        claims.entry(*token).or_default().insert(*id);
    }
    let mut lost = Vec::new();
    for (token, rows) in claims {
        lost.extend(retried(|| renew_claim(store, renewal, token, &rows)).await?);
    }
    Ok(lost)
}

async fn renew_claim(
    store: &SeaOrmStore,
    renewal: &Renewal<'_>,
    token: LeaseToken,
    rows: &BTreeSet<RowId>,
) -> Result<Vec<(RowId, LeaseToken)>, StoreError> {
    let failed = |error| store_error("renew leases", error);
    let holes = store
        .dialect
        .at(renewal.now)
        .with("ids", store.dialect.ids(rows.iter().map(|id| id.0)))
        .with("token", token.0)
        .with("lease", store.dialect.span(renewal.lease));
    if store.write(store.dialect.renew, &holes).await.map_err(failed)? == rows.len() as u64 {
        return Ok(Vec::new());
    }
    let mut lost = rows.clone();
    for row in store.query(store.dialect.held, &holes).await.map_err(failed)? {
        lost.remove(&RowId(row.try_get("", "id").map_err(failed)?));
    }
    Ok(lost.into_iter().map(|id| (id, token)).collect())
}

//! claimed → claimed for longer, under the token of the claim.

use super::{SeaOrmStore, retried};
use crate::convert::store_error;
use outbox_core::{
    RowId, StoreError,
    row::LeaseToken,
    store::{Renewal, Renewed},
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, Statement};
use std::collections::{BTreeMap, BTreeSet};

pub(super) async fn renew(store: &SeaOrmStore, renewal: &Renewal<'_>) -> Result<Renewed, StoreError> {
    let mut claims: BTreeMap<LeaseToken, BTreeSet<i64>> = BTreeMap::new();
    for (id, token) in renewal.rows {
        claims.entry(*token).or_default().insert(id.0);
    }
    let mut renewed = Renewed::default();
    for (token, rows) in claims {
        let claim = || async {
            let claim = renew_claim(store, renewal, token, &rows).await;
            claim.map_err(|error| store_error("renew leases", error))
        };
        let (lost, passed_over) = retried(claim).await?;
        let key = |id| (RowId(id), token);
        renewed.lost.extend(lost.into_iter().map(key));
        renewed.passed_over.extend(passed_over.into_iter().map(key));
    }
    Ok(renewed)
}

type Ids = BTreeSet<i64>;

/// Returns the rows that are lost, and those that are held and could not be locked.
async fn renew_claim(
    store: &SeaOrmStore,
    renewal: &Renewal<'_>,
    token: LeaseToken,
    rows: &Ids,
) -> Result<(Ids, Ids), DbErr> {
    let holes = |ids: &Ids| {
        let ids = store.dialect.ids(ids.iter().copied());
        store.dialect.at(renewal.now).with("ids", ids).with("token", token.0)
    };
    let tx = store.begin().await?;
    let locked = ids(&tx, store.statement(store.dialect.lock_held, &holes(rows))).await?;
    if !locked.is_empty() {
        let holes = holes(&locked).with("lease", store.dialect.span(renewal.lease));
        store.execute(&tx, store.dialect.renew, &holes).await?;
    }
    let rest: Ids = rows.difference(&locked).copied().collect();
    // Locked is not lost.
    let mut held = Ids::new();
    if !rest.is_empty() {
        held = ids(&tx, store.statement(store.dialect.held, &holes(&rest))).await?;
    }
    tx.commit().await?;
    Ok((rest.difference(&held).copied().collect(), held))
}

async fn ids(tx: &DatabaseTransaction, select: Statement) -> Result<Ids, DbErr> {
    tx.query_all_raw(select).await?.iter().map(|row| row.try_get("", "id")).collect()
}

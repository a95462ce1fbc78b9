//! claimed, lease expired → claimed anew and alone, or dead.

use super::SeaOrmStore;
use crate::{
    convert::{claimed_row, store_error, unreadable_row},
    dialect::begin_relay,
};
use outbox_core::{
    ErrorClass, RowId, StoreError,
    decide::{Expiry, LEASE_EXPIRED, decide_expired},
    row::{ClaimedRow, UnreadableRow},
    store::{TakeOver, TakenOver},
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, QueryResult};

/// Rows that one take-over buries at most, so that its transaction stays short.
const MAX_BURIED: usize = 100;

pub(super) async fn has_expired(store: &SeaOrmStore, request: &TakeOver<'_>) -> Result<bool, StoreError> {
    let holes = store.claim_holes(&request.claim);
    let tx = begin_relay(&store.db, store.dialect.backend).await.map_err(failed)?;
    let found =
        tx.query_one_raw(store.statement(store.dialect.select_expired, &holes)).await.map_err(failed)?;
    tx.rollback().await.map_err(failed)?;
    Ok(found.is_some())
}

pub(super) async fn take_over(store: &SeaOrmStore, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
    let mut taken = TakenOver::default();
    let tx = begin_relay(&store.db, store.dialect.backend).await.map_err(failed)?;
    let select = store.statement(store.dialect.select_expired, &store.claim_holes(&request.claim));
    while taken.buried.len() < MAX_BURIED {
        let Some(row) = tx.query_one_raw(select.clone()).await.map_err(failed)? else {
            break;
        };
        match end_attempt(store, &tx, request, &row).await? {
            Ended::Alone(row) => {
                taken.row = Some(*row);
                break;
            }
            Ended::Unreadable(row) => {
                taken.unreadable = Some(row);
                break;
            }
            Ended::Buried(id) => taken.buried.push(id),
        }
    }
    tx.commit().await.map_err(failed)?;
    Ok(taken)
}

enum Ended {
    Alone(Box<ClaimedRow>),
    Unreadable(UnreadableRow),
    Buried(RowId),
}

async fn end_attempt(
    store: &SeaOrmStore,
    tx: &DatabaseTransaction,
    request: &TakeOver<'_>,
    locked: &QueryResult,
) -> Result<Ended, StoreError> {
    let row = claimed_row(locked);
    let (id, attempts) = match &row {
        Ok(row) => (row.id, row.attempts),
        Err(error) => unreadable_row(locked, 0, error).map(|row| (row.id, row.attempts))?,
    };
    let isolated = locked.try_get::<bool>("", "isolated").map_err(failed)?;
    let holes = store
        .claim_holes(&request.claim)
        .with("id", id.0)
        .with("class", ErrorClass::LeaseExpired.as_str())
        .with("error", LEASE_EXPIRED);
    store.execute(tx, store.dialect.record_expiry, &holes).await.map_err(failed)?;
    match decide_expired(attempts, isolated, request.max_attempts) {
        Expiry::RunAlone => {
            store.execute(tx, store.dialect.take_over, &holes).await.map_err(failed)?;
            match row {
                Ok(mut row) => {
                    row.attempts += 1;
                    row.claims += 1;
                    Ok(Ended::Alone(Box::new(row)))
                }
                Err(error) => Ok(Ended::Unreadable(unreadable_row(locked, 1, &error)?)),
            }
        }
        Expiry::Dead => {
            store.execute(tx, store.dialect.bury, &holes).await.map_err(failed)?;
            Ok(Ended::Buried(id))
        }
    }
}

fn failed(error: sea_orm::DbErr) -> StoreError {
    store_error("take over rows with an expired lease", error)
}

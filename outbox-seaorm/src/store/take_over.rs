//! claimed, lease expired → claimed anew and alone, or dead.

use super::{SeaOrmStore, ordered::expired_of_keys};
use crate::convert::{claimed_row, store_error, unreadable_row};
use outbox_core::{
    ErrorClass, RowId, StoreError,
    decide::{Expiry, LEASE_EXPIRED, decide_expired},
    row::{ClaimedRow, UnreadableRow},
    store::{TakeOver, TakenOver},
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult};

/// Rows that one take-over buries at most, so that its transaction stays short.
const MAX_BURIED: usize = 100;

pub(super) async fn has_expired(store: &SeaOrmStore, request: &TakeOver<'_>) -> Result<bool, StoreError> {
    Ok(next_expired(&store.db, store, request).await.map_err(failed)?.is_some())
}

pub(super) async fn take_over(store: &SeaOrmStore, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
    let mut taken = TakenOver::default();
    let tx = store.begin().await.map_err(failed)?;
    let holes = store.claim_holes(&request.claim);
    while taken.buried.len() < MAX_BURIED {
        // What is found needs no lock: a first row of its key stays the first as long as it is live.
        let Some(RowId(id)) = next_expired(&tx, store, request).await.map_err(failed)? else { break };
        let lock = store.statement(store.dialect.lock_expired, &holes.clone().with("id", id));
        // Somebody else is taking it over at this moment; the next look finds another.
        let Some(row) = tx.query_one_raw(lock).await.map_err(failed)? else { break };
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
/// Unordered rows first, then those of keys that wait for one.
async fn next_expired(
    db: &impl ConnectionTrait,
    store: &SeaOrmStore,
    request: &TakeOver<'_>,
) -> Result<Option<RowId>, DbErr> {
    let find = store.statement(store.dialect.find_expired, &store.claim_holes(&request.claim));
    match db.query_one_raw(find).await? {
        Some(found) => Ok(Some(RowId(found.try_get("", "id")?))),
        None => expired_of_keys(db, store, &request.claim, request.keys).await,
    }
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

fn failed(error: DbErr) -> StoreError {
    store_error("take over rows with an expired lease", error)
}

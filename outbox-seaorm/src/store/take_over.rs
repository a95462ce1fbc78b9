//! claimed, lease expired → claimed anew and alone, or dead.

use super::{SeaOrmStore, ordered::expired_of_keys};
use crate::convert::{claimed_row, store_error, unreadable_row};
use outbox_core::{
    ErrorClass, StoreError,
    decide::{Expiry, LEASE_EXPIRED, decide_expired},
    row::{ClaimedRow, DeadLetter, UnreadableRow},
    store::{TakeOver, TakenOver},
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult};

/// Locked rows that one take-over passes over.
const MAX_HELD: usize = 20;
/// Rows that one take-over buries at most, so that its transaction stays short.
const MAX_BURIED: usize = 100;

pub(super) async fn has_expired(store: &SeaOrmStore, request: &TakeOver<'_>) -> Result<bool, StoreError> {
    let looked: Result<_, DbErr> = async {
        if store.dialect.plain_plans.is_none() {
            return next_expired(&store.db, store, request, &[]).await;
        }
        let tx = store.begin_looking().await?;
        let found = next_expired(&tx, store, request, &[]).await?;
        tx.commit().await?;
        Ok(found)
    }
    .await;
    Ok(looked.map_err(failed)?.is_some())
}

pub(super) async fn take_over(store: &SeaOrmStore, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
    let mut taken = TakenOver::default();
    let tx = store.begin_looking().await.map_err(failed)?;
    let holes = store.dialect.at(request.claim.now);
    let mut held = Vec::new();
    while taken.buried.len() < MAX_BURIED && held.len() < MAX_HELD {
        // What is found needs no lock: a first row of its key stays the first as long as it is live.
        let Some(id) = next_expired(&tx, store, request, &held).await.map_err(failed)? else { break };
        let lock = store.statement(store.dialect.lock_expired, &holes.clone().with("id", id));
        let Some(row) = tx.query_one_raw(lock).await.map_err(failed)? else {
            // Somebody has locked it; another one may be free.
            held.push(id);
            continue;
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
            Ended::Buried(letter) => taken.buried.push(letter),
        }
    }
    tx.commit().await.map_err(failed)?;
    Ok(taken)
}

/// Unordered rows first, then those of keys that wait for one; none of those that somebody holds.
async fn next_expired(
    db: &impl ConnectionTrait,
    store: &SeaOrmStore,
    request: &TakeOver<'_>,
    held: &[i64],
) -> Result<Option<i64>, DbErr> {
    // An id that no row has, because an empty list is no SQL.
    let ids = store.dialect.ids(held.iter().copied().chain([0]));
    let find =
        store.statement(store.dialect.find_expired, &store.claim_holes(&request.claim).with("held", ids));
    match db.query_one_raw(find).await? {
        Some(found) => Ok(Some(found.try_get("", "id")?)),
        None => expired_of_keys(db, store, &request.claim, request.keys, held).await,
    }
}

enum Ended {
    Alone(Box<ClaimedRow>),
    Unreadable(UnreadableRow),
    Buried(DeadLetter),
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
        .lease_holes(&request.claim)
        .with("id", id.0)
        .with("alone", request.alone)
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
            let (class, error) = (ErrorClass::LeaseExpired, LEASE_EXPIRED);
            Ok(Ended::Buried(match &row {
                Ok(row) => DeadLetter::of(row, class, error),
                Err(error) => DeadLetter::unreadable(&unreadable_row(locked, 0, error)?),
            }))
        }
    }
}

fn failed(error: DbErr) -> StoreError {
    store_error("take over rows with an expired lease", error)
}

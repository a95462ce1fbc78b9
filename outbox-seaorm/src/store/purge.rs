//! Deleting what is finished, by one purge at a time.

use super::SeaOrmStore;
use crate::convert::store_error;
use outbox_core::{
    StoreError,
    store::{Finished, Purge, Purged},
};
use sea_orm::{ConnectionTrait, DbErr};

pub(super) async fn purge(store: &SeaOrmStore, purge: &Purge) -> Result<Purged, StoreError> {
    let delete = match purge.finished {
        Finished::Dispatched => store.dialect.purge_dispatched,
        Finished::Resolved => store.dialect.purge_resolved,
        Finished::History => store.dialect.purge_history,
    };
    let holes = store
        .dialect
        .at(purge.now)
        .with("older_than", store.dialect.span_ago(purge.older_than))
        .with("limit", i64::from(purge.limit));
    let purged: Result<Purged, DbErr> = async {
        let tx = store.begin().await?;
        let lock = store.statement(store.dialect.lock_purge, &holes);
        if tx.query_one_raw(lock).await?.is_none() {
            tx.rollback().await?;
            return Ok(Purged { rows: 0, busy: true });
        }
        let rows = store.execute(&tx, delete, &holes).await?;
        tx.commit().await?;
        Ok(Purged { rows, busy: false })
    }
    .await;
    purged.map_err(|error| store_error("purge finished rows", error))
}

//! Deleting what is finished, by one purge at a time.

use super::{SeaOrmStore, signals::clock};
use crate::{convert::store_error, dialect::ago, sql::Holes};
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

impl SeaOrmStore {
    /// How many rows a purge would delete now: counted up to its limit, and nothing is deleted.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn purgeable(&self, purge: &Purge) -> Result<u64, StoreError> {
        let found = match purge.finished {
            Finished::Dispatched => {
                "SELECT id FROM {outbox} WHERE finished_at < :before AND status = 'dispatched' ORDER BY finished_at LIMIT :limit"
            }
            Finished::Resolved => {
                "SELECT id FROM {outbox} WHERE resolved_at < :before AND status = 'dead' ORDER BY resolved_at LIMIT :limit"
            }
            Finished::History => {
                "SELECT a.id FROM {attempts} AS a WHERE a.failed_at < :before AND NOT EXISTS (
                    SELECT 1 FROM {outbox} AS o
                     WHERE o.id = a.outbox_id
                       AND (o.finished_at IS NULL OR (o.status = 'dead' AND o.resolved_at IS NULL)))
                 LIMIT :limit"
            }
        };
        let counted: Result<i64, DbErr> = async {
            let at = clock(self, purge.now).await?;
            let holes = Holes::default()
                .with("before", self.dialect.time(ago(at, purge.older_than)))
                .with("limit", i64::from(purge.limit));
            let sql = format!("SELECT COUNT(*) AS n FROM ({found}) AS finished");
            let row = self.db.query_one_raw(self.statement(&sql, &holes)).await?;
            row.map_or(Ok(0), |row| row.try_get("", "n"))
        }
        .await;
        let counted = counted.map_err(|error| store_error("count finished rows", error))?;
        Ok(u64::try_from(counted).unwrap_or(0))
    }
}

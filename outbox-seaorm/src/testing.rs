//! For tests of code that saves aggregates (feature `testing`): what they have raised, and all rows of a
//! [`SeaOrmStore`], as [`outbox_core::testing`] wants them.

use crate::{SeaOrmStore, convert::store_error, save::Aggregate, sql::Holes};
use outbox_core::{
    MessageId, OutboxRow, OutboxStore, StoreError,
    testing::{Inspect, Raised},
};
use sea_orm::{ConnectionTrait, DbErr};

const ALL_IDS: &str = "SELECT message_id FROM {outbox} ORDER BY id";

/// What an aggregate has raised and not saved yet; those of `raise_with` with this saved model.
///
/// # Panics
///
/// When one of the events could not be stored.
pub fn raised<A: Aggregate>(aggregate: &A, saved: &A::Model) -> Raised {
    Raised::of(A::parts(aggregate).1, saved)
}

/// What an aggregate has raised with `raise` alone.
///
/// # Panics
///
/// When an event was raised with `raise_with`, and as [`raised`].
pub fn raised_without_model<A: Aggregate>(aggregate: &A) -> Raised {
    Raised::without_model(A::parts(aggregate).1)
}

impl Inspect for SeaOrmStore {
    async fn all_rows(&self) -> Result<Vec<OutboxRow>, StoreError> {
        let ids: Result<Vec<_>, DbErr> = async {
            let found = self.connection().query_all_raw(self.statement(ALL_IDS, &Holes::default())).await?;
            found.iter().map(|row| row.try_get::<uuid::Uuid>("", "message_id")).collect()
        }
        .await;
        let mut rows = Vec::new();
        for id in ids.map_err(|error| store_error("read all rows", error))? {
            // One that was purged in between is no row any more.
            rows.extend(self.find(MessageId::from(id)).await?);
        }
        Ok(rows)
    }
}

//! Forgetting old records.

use super::{Inbox, InboxError};
use crate::{
    dialect::{Dialect, begin_relay},
    sql::statement,
    store::retry::again,
};
use chrono::{DateTime, Utc};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use std::time::Duration;

/// Which records of an [`Inbox`] are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxPurge {
    /// Only records that are older than this.
    pub older_than: Duration,
    /// At most so many of them, the oldest.
    pub limit: u32,
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

impl Inbox {
    /// Deletes the oldest records, at most `limit` of them, and says how many. Call it on a schedule of yours until it
    /// deletes less than the limit; it never runs by itself.
    ///
    /// **`older_than` has to be longer than the longest time between two deliveries of one message.** A message whose
    /// record is gone has its effect again. With relays of this crate, that is the time from the first attempt to the
    /// last one: ten attempts with the default backoff end within an hour, `.retry_after` grants up to a day each, and on
    /// top come pauses and outages of the relays, their database, and what a handler calls `unavailable`. A broker in
    /// between adds its own retention, and people who send old messages again add theirs. When in doubt, 30 days; a record
    /// is small.
    ///
    /// # Errors
    ///
    /// The database's error. Conflicts with other transactions are tried again, a few times.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the records are deleted or not.
    pub async fn purge(self, db: &DatabaseConnection, purge: &InboxPurge) -> Result<u64, InboxError> {
        let dialect = Dialect::of(db.get_database_backend())?;
        let holes = dialect
            .at(purge.now)
            .with("older_than", dialect.span_ago(purge.older_than))
            .with("limit", i64::from(purge.limit));
        let names = self.tables.for_backend(dialect.backend);
        let delete = || async {
            // At MySQL's default level the DELETE would lock the gap that new records go into.
            let tx = begin_relay(db).await?;
            let purge = statement(dialect.backend, &names, dialect.purge_inbox, &holes);
            let deleted = tx.execute_raw(purge).await?.rows_affected();
            tx.commit().await?;
            Ok(deleted)
        };
        again(delete, InboxError::is_conflict).await
    }
}

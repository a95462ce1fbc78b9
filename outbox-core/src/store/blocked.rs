//! Ordering keys that wait, and for what.

use crate::row::RowId;
use chrono::{DateTime, Utc};

/// An ordering key of which nothing is dispatched for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedKey {
    /// The key as it is stored.
    pub key: String,
    /// The row that holds it up.
    pub head: RowId,
    /// What that row is.
    pub logical_name: String,
    /// Why it holds up the key.
    pub cause: Cause,
    /// Since when: when the row died, or else when it was stored (database clock).
    pub since: DateTime<Utc>,
    /// Live rows that wait behind it; counted up to [`MAX_FOLLOWERS`](Self::MAX_FOLLOWERS).
    pub followers: u64,
}

impl BlockedKey {
    /// How far the rows behind a key are counted, so that a long queue costs no more.
    pub const MAX_FOLLOWERS: u32 = 10_000;
}

/// Why a key waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Its first row is dead and not resolved: replay or skip it.
    Dead,
    /// Its first row failed and is tried again.
    Backoff {
        /// When it is due (database clock).
        until: DateTime<Utc>,
    },
    /// No live relay reads its first row: deploy one that does, ignore the event, or skip the row.
    Unroutable,
}

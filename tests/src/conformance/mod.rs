//! The contract of a store, for all of them. Times are pinned, so nothing waits.

pub mod claim;
pub mod control;
pub mod list;
pub mod mark;
pub mod operate;
pub mod ordered;
pub mod purge;
pub mod renew;
pub mod signals;
pub mod take_over;
pub mod values;

use crate::{
    events::{OrderPlaced, route},
    subject::Subject,
};
use chrono::{DateTime, TimeDelta, Utc};
use outbox_core::{
    OutboxStore,
    decide::Transition,
    row::{ClaimedRow, LeaseToken},
    store::{ClaimRequest, Mark, MarkReport, Route, TakeOver},
};
use std::{sync::LazyLock, time::Duration};

/// A time, as stores take it.
pub type Time = DateTime<Utc>;

/// The length of every lease in the suite.
pub const LEASE: Duration = Duration::from_mins(1);

static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| vec![route::<OrderPlaced>()]);

/// So many seconds after a time at which every row of a test is due.
///
/// # Panics
///
/// Never.
pub fn at(seconds: i64) -> Option<DateTime<Utc>> {
    let start = DateTime::from_timestamp(2_208_988_800, 0).expect("2040-01-01");
    Some(start + TimeDelta::seconds(seconds))
}

/// A claim of placed orders.
pub fn request(limit: u32, now: Option<DateTime<Utc>>) -> ClaimRequest<'static> {
    ClaimRequest {
        claimed_by: "relay-1",
        token: LeaseToken::new(),
        lease: LEASE,
        limit,
        routes: &ROUTES,
        proceed: &[],
        now,
    }
}

/// A take-over of placed orders, dead after three attempts.
pub fn take_over(now: Option<DateTime<Utc>>) -> TakeOver<'static> {
    TakeOver { claim: request(1, now), keys: &[], alone: true, max_attempts: 3 }
}

/// Claims, and returns the rows with their token.
///
/// # Panics
///
/// When the store fails.
pub async fn claim(
    subject: &impl Subject,
    limit: u32,
    now: Option<DateTime<Utc>>,
) -> (LeaseToken, Vec<ClaimedRow>) {
    let request = request(limit, now);
    (request.token, subject.store().claim(&request).await.unwrap().rows)
}

/// Marks rows of one claim alike.
///
/// # Panics
///
/// When the store fails.
pub async fn mark(
    subject: &impl Subject,
    token: LeaseToken,
    rows: &[ClaimedRow],
    transition: &Transition,
    now: Option<DateTime<Utc>>,
) -> MarkReport {
    let mark = |row: &ClaimedRow| Mark {
        id: row.id,
        token,
        transition: transition.clone(),
        replay_of: row.replay_of,
    };
    let marks: Vec<_> = rows.iter().map(mark).collect();
    subject.store().mark(&marks, now).await.unwrap()
}

/// The ids of claimed rows.
pub fn ids(rows: &[ClaimedRow]) -> Vec<outbox_core::RowId> {
    rows.iter().map(|row| row.id).collect()
}

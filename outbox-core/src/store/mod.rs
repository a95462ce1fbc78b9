//! What a relay asks of a database. `outbox-seaorm` answers it with SQL, `testing::MemoryStore` in memory; one
//! conformance suite holds all of them to the same behaviour.

mod error;

pub use error::{StoreError, StoreErrorKind};

use crate::{
    decide::Transition,
    envelope::MessageId,
    row::{ClaimedRow, LeaseToken, OutboxRow, RowId, UnreadableRow},
};
use chrono::{DateTime, Utc};
use std::{future::Future, time::Duration};

/// The storage side of a relay.
///
/// Every time is the database's; a `now` in a request replaces it, for tests. Every method may be dropped while it
/// runs: a claim that was dropped is recovered when its lease expires, a mark that was dropped is either written or
/// not.
pub trait OutboxStore: Send + Sync + 'static {
    /// Checks that the tables are there and as this version needs them. A relay calls it once, when it starts.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Setup`] with what to do, or the database's error.
    fn check(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Claims up to `limit` due rows that nobody owns: counts the attempt and the claim and sets the lease.
    ///
    /// Rows that another relay is claiming at this moment are skipped. Rows with an expired lease are not claimed
    /// here but [taken over](Self::take_over). Rows come in the order in which they became due.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is claimed then, or only until the lease expires.
    fn claim(&self, request: &ClaimRequest<'_>) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Takes over one row whose lease has expired, for a relay that runs nothing else meanwhile; rows that used up
    /// their attempts alone are buried on the way. Each writes the history of the lost attempt.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is taken over then, or only until the lease expires.
    fn take_over(&self, request: &TakeOver<'_>)
    -> impl Future<Output = Result<TakenOver, StoreError>> + Send;

    /// Whether a row waits to be taken over.
    ///
    /// # Errors
    ///
    /// The database's error.
    fn has_expired(&self, request: &TakeOver<'_>) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Writes what became of claimed rows, each under its own lease token: a row whose token has changed is left
    /// alone and counted as lost.
    ///
    /// # Errors
    ///
    /// The database's error; the marks can be written again.
    fn mark(
        &self,
        marks: &[Mark],
        now: Option<DateTime<Utc>>,
    ) -> impl Future<Output = Result<MarkReport, StoreError>> + Send;

    /// Deletes up to `limit` rows that were dispatched longer than `older_than` ago, and nothing else.
    ///
    /// # Errors
    ///
    /// The database's error.
    fn purge(&self, purge: &Purge) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// The row of a message.
    ///
    /// # Errors
    ///
    /// The database's error, or a row that this version cannot read.
    fn find(&self, id: MessageId) -> impl Future<Output = Result<Option<OutboxRow>, StoreError>> + Send;
}

/// What a relay can handle: a name and a version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// Stored name of the event.
    pub event_type: &'static str,
    /// A version that some handler reads.
    pub event_version: u16,
}

/// A claim of due rows.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest<'a> {
    /// Who claims; shown to operators.
    pub claimed_by: &'a str,
    /// A fresh token.
    pub token: LeaseToken,
    /// How long the rows are owned.
    pub lease: Duration,
    /// At most so many rows.
    pub limit: u32,
    /// Only these events.
    pub routes: &'a [Route],
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

/// A claim of one row with an expired lease.
#[derive(Clone, Copy, Debug)]
pub struct TakeOver<'a> {
    /// As for a claim; `limit` does not apply.
    pub claim: ClaimRequest<'a>,
    /// Attempts after which a row that ran alone is dead.
    pub max_attempts: u32,
}

/// What a claim brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claimed {
    /// Rows to handle, in the order in which they became due.
    pub rows: Vec<ClaimedRow>,
    /// Rows that this version cannot read. They are claimed as well, and fail without touching the others.
    pub unreadable: Vec<UnreadableRow>,
}

/// What a take-over brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TakenOver {
    /// A row to run alone.
    pub row: Option<ClaimedRow>,
    /// Or a row that was taken over and cannot be read.
    pub unreadable: Option<UnreadableRow>,
    /// Rows that are dead now.
    pub buried: Vec<RowId>,
}

/// What became of one claimed row.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The row.
    pub id: RowId,
    /// The claim under which it was handled.
    pub token: LeaseToken,
    /// What happens to it.
    pub transition: Transition,
}

/// How many marks were written, and how many came too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkReport {
    /// Rows that were marked.
    pub marked: u64,
    /// Rows whose lease was lost; somebody else owns them now, or has finished them.
    pub lost: u64,
}

/// A bounded deletion of finished rows.
#[derive(Clone, Copy, Debug)]
pub struct Purge {
    /// Only rows that were dispatched longer ago than this.
    pub older_than: Duration,
    /// At most so many rows.
    pub limit: u32,
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

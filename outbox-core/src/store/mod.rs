//! What a relay asks of a database. `outbox-seaorm` answers it with SQL, `testing::MemoryStore` in memory; one
//! conformance suite holds all of them to the same behaviour.

mod blocked;
mod bulk;
mod control;
mod error;
mod list;
mod operate;
mod signals;

pub use blocked::{BlockedKey, Cause};
pub use bulk::{ReplayPlan, Replayed};
pub use control::{Announcement, Control, HandlerSets, LiveRelay, Pause, PauseEntry};
pub use list::{Contents, ListFilter, ListRequest, ListedAttempt, ListedRow, Page, Shown, Standing};
pub use operate::{OperateError, OutboxOperator, Replay};
pub use signals::{BlockedSignals, EventSignals, Signals};

pub(crate) use error::{PATIENCE, answered};
pub use error::{StoreError, StoreErrorKind};

use crate::{
    decide::Transition,
    envelope::MessageId,
    row::{ClaimedRow, DeadLetter, LeaseToken, OutboxRow, RowId, UnreadableRow},
};
use chrono::{DateTime, Utc};
use std::{fmt, future::Future, time::Duration};

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
    /// here but [taken over](Self::take_over). The event whose first row became due first is taken up to `limit`, then the
    /// next event, so that rows which nobody asks for cost nothing. What was claimed comes in the order in which it
    /// became due.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is claimed then, or only until the lease expires.
    fn claim(&self, request: &ClaimRequest<'_>) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Whether claims side by side are faster than one after the other. A relay then makes two larger ones at once
    /// while its handlers are faster than a single claim. Default: no.
    fn claims_at_once(&self) -> bool {
        false
    }

    /// Claims due rows that are ordered: of each key an unbroken run from its first live row, as
    /// [`decide::order`](crate::decide::order) says. Keys are taken in turn, starting after the one that the request
    /// names. Rows come in the order of their ids; those of one key are to be handled one after the other, and what
    /// follows a row that was not dispatched is to be given back.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is claimed then, or only until the lease expires.
    fn claim_ordered(
        &self,
        request: &OrderedRequest<'_>,
    ) -> impl Future<Output = Result<OrderedClaim, StoreError>> + Send;

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

    /// Makes leases end later: so long from now. A lease that has expired is not lost before somebody else took the row.
    /// A row that somebody has locked is passed over, so that it does not cost the others their leases.
    ///
    /// # Errors
    ///
    /// The database's error; it can be tried again.
    fn renew(&self, renewal: &Renewal<'_>) -> impl Future<Output = Result<Renewed, StoreError>> + Send;

    /// Deletes up to `limit` rows that are proven to be finished for longer than `older_than`, and nothing else. Only
    /// one purge runs at a time, whoever asks.
    ///
    /// # Errors
    ///
    /// The database's error.
    fn purge(&self, purge: &Purge) -> impl Future<Output = Result<Purged, StoreError>> + Send;

    /// Tells the other relays which handlers this one has; forgotten after a while unless it is said again.
    ///
    /// # Errors
    ///
    /// The database's error.
    fn announce(
        &self,
        announcement: &Announcement<'_>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes the announcement back.
    ///
    /// # Errors
    ///
    /// The database's error; it is forgotten by itself.
    fn withdraw(&self, relay: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What is paused, and which relays live.
    ///
    /// # Errors
    ///
    /// The database's error.
    fn control(&self, now: Option<DateTime<Utc>>)
    -> impl Future<Output = Result<Control, StoreError>> + Send;

    /// The row of a message.
    ///
    /// # Errors
    ///
    /// The database's error, or a row that this version cannot read.
    fn find(&self, id: MessageId) -> impl Future<Output = Result<Option<OutboxRow>, StoreError>> + Send;
}

/// What a relay can handle: a name and a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// Stored name of the event.
    pub event_type: &'static str,
    /// A version that some handler reads.
    pub event_version: u16,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.v{}", self.event_type, self.event_version)
    }
}

/// A claim of due rows.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest<'a> {
    /// Who claims; shown to operators.
    pub claimed_by: &'a str,
    /// A fresh token; claims that a relay makes in one pass may share it.
    pub token: LeaseToken,
    /// How long the rows are owned.
    pub lease: Duration,
    /// At most so many rows.
    pub limit: u32,
    /// Only these events.
    pub routes: &'a [Route],
    /// Event types whose dead letters do not block their ordering key.
    pub proceed: &'a [&'static str],
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

/// A claim of due rows that are ordered.
#[derive(Clone, Copy, Debug)]
pub struct OrderedRequest<'a> {
    /// As for any claim.
    pub claim: ClaimRequest<'a>,
    /// Only keys after this one; all when there is none.
    pub after: Option<&'a str>,
}

/// What a claim of ordered rows brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrderedClaim {
    /// The rows.
    pub claimed: Claimed,
    /// The key after which the next claim goes on; `None` when all keys were looked at.
    pub next: Option<String>,
    /// Keys that wait for a row whose lease has expired, to be taken over.
    pub expired: Vec<String>,
}

/// A claim of one row with an expired lease.
#[derive(Clone, Copy, Debug)]
pub struct TakeOver<'a> {
    /// As for a claim; `limit` does not apply.
    pub claim: ClaimRequest<'a>,
    /// Keys that wait for a row whose lease has expired, as a claim has told.
    pub keys: &'a [String],
    /// Whether the row is to run with nothing beside it; only then can it die of a crash.
    pub alone: bool,
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
    pub buried: Vec<DeadLetter>,
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
    /// The dead letter that it replays: when it is dispatched, the whole chain is resolved with it.
    pub replay_of: Option<RowId>,
}

/// How many marks were written, and how many came too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkReport {
    /// Rows that were marked.
    pub marked: u64,
    /// Rows whose lease was lost; somebody else owns them now, or has finished them.
    pub lost: u64,
}

/// Leases that are to last longer.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    /// Each row with the claim under which it is held.
    pub rows: &'a [(RowId, LeaseToken)],
    /// How long from now.
    pub lease: Duration,
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

/// What became of a renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Leases that are lost: somebody else owns the rows, or they are finished.
    pub lost: Vec<(RowId, LeaseToken)>,
    /// Leases that are still held and were not renewed, because somebody has locked the rows.
    pub passed_over: Vec<(RowId, LeaseToken)>,
}

/// What a purge deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Dispatched rows.
    Dispatched,
    /// Dead letters whose replay was dispatched, or that were skipped.
    Resolved,
    /// Failed attempts of rows that are dispatched, resolved or gone.
    History,
}

/// A bounded deletion.
#[derive(Clone, Copy, Debug)]
pub struct Purge {
    /// What.
    pub finished: Finished,
    /// Only what is finished for longer than this.
    pub older_than: Duration,
    /// At most so many rows.
    pub limit: u32,
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

/// What a purge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Rows that are gone.
    pub rows: u64,
    /// Another purge is running, so this one did nothing.
    pub busy: bool,
}

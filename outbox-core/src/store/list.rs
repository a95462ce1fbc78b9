//! Looking at rows: which ones to list, and what is told of each. A row that a newer version wrote is told as it is.

use crate::{
    envelope::MessageId,
    row::{ErrorClass, RowId, Status, UnreadableRow},
};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// Which rows. Conditions add up; the default takes all.
///
/// ```
/// use outbox_core::{ErrorClass, store::{ListFilter, Standing}};
///
/// let mut timeouts = ListFilter::default();
/// timeouts.standing = Standing::Replayable;
/// timeouts.event_type = Some("orders.order-placed".to_owned());
/// timeouts.class = Some(ErrorClass::Timeout);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListFilter {
    /// Where they stand.
    pub standing: Standing,
    /// Stored name of the event.
    pub event_type: Option<String>,
    /// Version of the event.
    pub event_version: Option<u16>,
    /// Only those that have failed, and were not dispatched since.
    pub failed: bool,
    /// Why they failed last.
    pub class: Option<ErrorClass>,
    /// Their ordering key, as it is stored.
    pub ordering_key: Option<String>,
    /// Type of the aggregate that raised them.
    pub aggregate_type: Option<String>,
    /// Id of that aggregate.
    pub aggregate_id: Option<String>,
    /// The message; there is one row at most.
    pub message_id: Option<MessageId>,
    /// Their conversation.
    pub correlation_id: Option<String>,
    /// The relay that owns them.
    pub claimed_by: Option<String>,
    /// Stored longer ago than this (database clock).
    pub older_than: Option<Duration>,
    /// Stored less long ago than this (database clock).
    pub newer_than: Option<Duration>,
}

impl ListFilter {
    /// Whether it names something that rows have in common, beyond where they stand.
    pub fn names_something(&self) -> bool {
        let of_every_standing = Self { standing: self.standing, ..Self::default() };
        *self != of_every_standing
    }
}

/// Where a row stands, for a [`ListFilter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Anywhere.
    #[default]
    Any,
    /// Not finished: pending or claimed.
    Live,
    /// In this state.
    Status(Status),
    /// Dead, and neither skipped nor resolved by a replay.
    Unresolved,
    /// Unresolved, and not replayed yet: what [`Signals`](super::Signals) count as dead letters and a replay takes.
    Replayable,
}

/// A page of rows.
#[derive(Clone, Copy, Debug)]
pub struct ListRequest<'a> {
    /// Which rows.
    pub filter: &'a ListFilter,
    /// The newest first, instead of the oldest.
    pub newest_first: bool,
    /// Only rows behind this one, in that order: [`Page::next`] of the page before.
    pub after: Option<RowId>,
    /// At most so many, and never more than [`MAX_LIMIT`](Self::MAX_LIMIT).
    pub limit: u32,
    /// Also payload and headers, which are not even loaded otherwise.
    pub contents: bool,
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

impl<'a> ListRequest<'a> {
    /// How many rows a page has at most.
    pub const MAX_LIMIT: u32 = 1_000;

    /// The first page of some rows: the oldest 100, without their contents.
    pub fn of(filter: &'a ListFilter) -> Self {
        Self { filter, newest_first: false, after: None, limit: 100, contents: false, now: None }
    }

    /// The limit, brought into its bounds.
    pub fn bounded_limit(&self) -> u32 {
        self.limit.min(Self::MAX_LIMIT)
    }
}

/// Some rows, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The rows.
    pub rows: Vec<ListedRow>,
    /// Rows of which some column cannot be read at all. They stand between the others.
    pub unreadable: Vec<UnreadableRow>,
    /// Where the next page begins; `None` when there is none.
    pub next: Option<RowId>,
}

/// A row, as a list tells it: texts that only a newer version knows stay texts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ListedRow {
    /// Key of the row.
    pub id: RowId,
    /// Identity of the message.
    pub message_id: MessageId,
    /// Stored name of the event.
    pub event_type: String,
    /// Version of the event, as it is stored.
    pub event_version: i32,
    /// Type of the aggregate that raised it.
    pub aggregate_type: Option<String>,
    /// Id of that aggregate.
    pub aggregate_id: Option<String>,
    /// Version of that aggregate.
    pub aggregate_version: Option<i64>,
    /// The key whose order is kept.
    pub ordering_key: Option<String>,
    /// The conversation.
    pub correlation_id: Option<String>,
    /// The message that caused this one.
    pub causation_id: Option<MessageId>,
    /// Where it stands, as it is stored: the text of a [`Status`].
    pub status: String,
    /// Tries so far.
    pub attempts: i32,
    /// Claims so far.
    pub claims: i64,
    /// Not claimed before this time (database clock).
    pub available_at: DateTime<Utc>,
    /// The relay that owns it.
    pub claimed_by: Option<String>,
    /// When its lease ends (database clock).
    pub lease_expires_at: Option<DateTime<Utc>>,
    /// When it was raised (application's clock).
    pub occurred_at: DateTime<Utc>,
    /// When it was stored (database clock).
    pub created_at: DateTime<Utc>,
    /// When it became dispatched or dead (database clock).
    pub finished_at: Option<DateTime<Utc>>,
    /// When it stopped to be owed, though dead (database clock).
    pub resolved_at: Option<DateTime<Utc>>,
    /// Handlers that do not run again, as they are stored: a JSON object.
    pub completed_handlers: Option<String>,
    /// Why it failed last, as it is stored: the text of an [`ErrorClass`].
    pub error_class: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The dead letter that it replays.
    pub replay_of: Option<RowId>,
    /// The replay of it.
    pub replayed_as: Option<RowId>,
    /// Who replayed (on the replay) or skipped (on the row itself).
    pub operated_by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Payload and headers, when they were asked for.
    pub contents: Option<Contents>,
}

/// What a message says. It may be private, so it is told only when it is asked for, and its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    /// The payload, to the letter.
    pub payload: String,
    /// The headers: a JSON object, as it is stored.
    pub headers: String,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contents").finish_non_exhaustive()
    }
}

impl ListedRow {
    /// A row that was just stored, of which nothing else is known.
    pub fn pending(id: RowId, message_id: MessageId, event: (String, i32), at: DateTime<Utc>) -> Self {
        let (event_type, event_version) = event;
        Self {
            id,
            message_id,
            event_type,
            event_version,
            aggregate_type: None,
            aggregate_id: None,
            aggregate_version: None,
            ordering_key: None,
            correlation_id: None,
            causation_id: None,
            status: Status::Pending.as_str().to_owned(),
            attempts: 0,
            claims: 0,
            available_at: at,
            claimed_by: None,
            lease_expires_at: None,
            occurred_at: at,
            created_at: at,
            finished_at: None,
            resolved_at: None,
            completed_handlers: None,
            error_class: None,
            last_error: None,
            replay_of: None,
            replayed_as: None,
            operated_by: None,
            reason: None,
            contents: None,
        }
    }

    /// `orders.order-placed.v2`.
    pub fn logical_name(&self) -> String {
        format!("{}.v{}", self.event_type, self.event_version)
    }

    /// Where it stands, if this version knows the word.
    pub fn known_status(&self) -> Option<Status> {
        self.status.parse().ok()
    }
}

/// One row and all that belongs to it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shown {
    /// The row.
    pub row: ListedRow,
    /// Its failed attempts, the first ones first; the last [`MAX_ATTEMPTS`](Self::MAX_ATTEMPTS) of them.
    pub attempts: Vec<ListedAttempt>,
    /// The dead letters and replays that hang together with it, the row itself among them, the first one first. Rows
    /// that were purged are missing at its ends.
    pub chain: Vec<RowId>,
}

impl Shown {
    /// How many failed attempts are shown.
    pub const MAX_ATTEMPTS: u32 = 1_000;

    /// What a store has found.
    pub fn new(row: ListedRow, attempts: Vec<ListedAttempt>, chain: Vec<RowId>) -> Self {
        Self { row, attempts, chain }
    }
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAttempt {
    /// Which attempt.
    pub attempt: i32,
    /// The relay that made it.
    pub relay: String,
    /// The handler that failed, if one did.
    pub handler: Option<String>,
    /// Why, as it is stored: the text of an [`ErrorClass`].
    pub class: String,
    /// What went wrong.
    pub error: String,
    /// When (database clock).
    pub failed_at: DateTime<Utc>,
}

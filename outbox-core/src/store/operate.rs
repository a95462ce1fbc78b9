//! What an operator may do to a row. Each verb is guarded by the row's state: one that does not fit changes nothing and
//! says why.

use super::{BlockedKey, ListRequest, OutboxStore, Page, Pause, Shown, Signals, StoreError};
use crate::row::{RowId, Status};
use chrono::{DateTime, Utc};
use std::future::Future;

/// The operator's side of an outbox.
///
/// Names and reasons are kept with the row. A `now` replaces the database's clock, for tests.
pub trait OutboxOperator: OutboxStore {
    /// Tries a dead letter again, as a **new** message with its own `message_id`, linked to the dead one; consumers that
    /// remember message ids do not mistake it for the old one. The dead row stays as it is until the replay is
    /// dispatched, which resolves it. Returns the new row.
    ///
    /// # Errors
    ///
    /// [`OperateError::State`] unless the row is dead, unresolved and not replayed yet; the store's error.
    fn replay(&self, replay: &Replay<'_>) -> impl Future<Output = Result<RowId, OperateError>> + Send;

    /// Gives a row up: a dead letter is resolved; a pending row becomes a resolved dead letter, which is for rows that no
    /// relay reads any more. Where it replays others, they are resolved with it.
    ///
    /// # Errors
    ///
    /// [`OperateError::State`] when the row is claimed, dispatched, resolved already, or replayed (skip the replay
    /// then); the store's error.
    fn skip(
        &self,
        id: RowId,
        by: &str,
        reason: Option<&str>,
        now: Option<DateTime<Utc>>,
    ) -> impl Future<Output = Result<(), OperateError>> + Send;

    /// Ends the backoff of a pending row: it is due now.
    ///
    /// # Errors
    ///
    /// [`OperateError::State`] unless the row is pending; the store's error.
    fn retry_now(
        &self,
        id: RowId,
        now: Option<DateTime<Utc>>,
    ) -> impl Future<Output = Result<(), OperateError>> + Send;

    /// Takes a row from a relay that vanished, so that any relay may claim it. Relays do this by themselves for the rows
    /// that they read; it is for rows that none reads any more. The lost attempt counts and is written to the history.
    ///
    /// # Errors
    ///
    /// [`OperateError::State`] unless the row is claimed and its lease has expired by the database's clock: a live
    /// lease is never broken; the store's error.
    fn release(
        &self,
        id: RowId,
        now: Option<DateTime<Utc>>,
    ) -> impl Future<Output = Result<(), OperateError>> + Send;

    /// Ordering keys that wait for a dead letter, a row in backoff, or a row that no live relay reads; at most `limit`,
    /// those with dead letters first. It looks at some thousands of keys, and not at all of them where there are more.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn blocked_keys(
        &self,
        limit: u32,
        now: Option<DateTime<Utc>>,
    ) -> impl Future<Output = Result<Vec<BlockedKey>, StoreError>> + Send;

    /// What is late, and why. It costs a statement and one look at each event's live rows, up to
    /// [`EventSignals::MAX_COUNTED`](super::EventSignals::MAX_COUNTED) of each, and what the keys cost that are blocked;
    /// finished rows cost nothing.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn signals(&self, now: Option<DateTime<Utc>>)
    -> impl Future<Output = Result<Signals, StoreError>> + Send;

    /// Rows, a page at a time, in the order of their ids. Rows that this version cannot read are told, and hide no other.
    ///
    /// Cheap whatever the history: live rows, dead letters, a message, an ordering key or a relay among live rows. Other
    /// conditions on finished rows are looked for along the ids until the page is full, which on a large table takes long
    /// when few rows meet them.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn list(&self, request: &ListRequest<'_>) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// A row with its failed attempts and with the dead letters and replays that it hangs together with; `contents`: also
    /// payload and headers.
    ///
    /// # Errors
    ///
    /// [`OperateError::NotFound`]; the store's error, also for a row of which a column cannot be read at all.
    fn show(&self, id: RowId, contents: bool) -> impl Future<Output = Result<Shown, OperateError>> + Send;

    /// Pauses something. Relays follow within about a second. Pausing it again replaces name and reason.
    ///
    /// # Errors
    ///
    /// [`OperateError::Text`]; [`OperateError::Version`] for one version of an event; the store's error.
    fn pause(
        &self,
        pause: &Pause,
        by: &str,
        reason: Option<&str>,
    ) -> impl Future<Output = Result<(), OperateError>> + Send;

    /// Ends a pause. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn resume(&self, pause: &Pause) -> impl Future<Output = Result<bool, OperateError>> + Send;
}

/// A replay of one dead letter.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a> {
    /// The dead letter.
    pub id: RowId,
    /// Who.
    pub by: &'a str,
    /// Why.
    pub reason: Option<&'a str>,
    /// Also the handlers that have succeeded; otherwise only those that are owed.
    pub all_handlers: bool,
}

/// Why a verb did nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperateError {
    /// There is no such row.
    #[error("there is no outbox row {0}; it may have been purged")]
    NotFound(RowId),
    /// The row is in a state that the verb does not fit.
    #[error("outbox row {id} is {status}, {problem}")]
    State {
        /// The row.
        id: RowId,
        /// Where it stands.
        status: Status,
        /// Why that does not fit, and what does.
        problem: &'static str,
    },
    /// Who or why cannot be stored.
    #[error("{what} must have 1 to {limit} characters and no NUL")]
    Text {
        /// Which text.
        what: &'static str,
        /// The longest.
        limit: usize,
    },
    /// An event is paused by its name, in all its versions; this is a name and a version.
    #[error(
        "{logical_name:?} is one version of an event, and an event is paused in all its versions: leave the version out"
    )]
    Version {
        /// What was to be paused.
        logical_name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The longest name of an operator, in characters.
const MAX_BY: usize = 200;
/// The longest reason, in characters.
const MAX_REASON: usize = 2_000;
/// The longest name of an event or a handler, in bytes.
const MAX_PAUSED: usize = 200;

impl OperateError {
    /// Checks who and why before anything is written.
    ///
    /// # Errors
    ///
    /// [`OperateError::Text`].
    pub fn check_texts(by: &str, reason: Option<&str>) -> Result<(), Self> {
        let fits = |text: &str, limit| (1..=limit).contains(&text.chars().count()) && !text.contains('\0');
        if !fits(by, MAX_BY) {
            return Err(Self::Text { what: "the operator's name", limit: MAX_BY });
        }
        if reason.is_some_and(|reason| !fits(reason, MAX_REASON)) {
            return Err(Self::Text { what: "the reason", limit: MAX_REASON });
        }
        Ok(())
    }

    /// Checks that something can have the name that is to be paused, so that nobody relies on a pause of nothing.
    ///
    /// # Errors
    ///
    /// [`OperateError::Text`], [`OperateError::Version`].
    pub fn check_pause(pause: &Pause) -> Result<(), Self> {
        let name = pause.name();
        if !(1..=MAX_PAUSED).contains(&name.len()) || name.contains('\0') {
            return Err(Self::Text { what: "the name of what is paused", limit: MAX_PAUSED });
        }
        let version = name.rsplit_once(".v").map(|(_, version)| version);
        if matches!(pause, Pause::Event(_)) && version.is_some_and(|version| version.parse::<u16>().is_ok()) {
            return Err(Self::Version { logical_name: name.to_owned() });
        }
        Ok(())
    }
}

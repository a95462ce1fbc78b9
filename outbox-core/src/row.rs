//! The stored form of a message: the envelope and the state of its delivery.

use crate::envelope::Envelope;
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, fmt, str::FromStr};
use uuid::Uuid;

/// Key of a row, in order of insertion. Not a cursor: a lower id can be committed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub i64);

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Proof of one claim. Every final write names it, so that a claim which has expired can no longer write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseToken(pub Uuid);

impl LeaseToken {
    /// A token that no claim has had before.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for LeaseToken {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// Waiting for a claim; with `attempts` > 0 it waits for its next try.
    Pending,
    /// Owned by a relay until its lease expires.
    Claimed,
    /// All its handlers have succeeded.
    Dispatched,
    /// Out of attempts, or refused. Kept until an operator decides.
    Dead,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The handler returned an error that may pass.
    Transient,
    /// The handler refused the message for good.
    Terminal,
    /// The payload could not be read as the event.
    Decode,
    /// The handler panicked. Counts as transient.
    Panic,
    /// The handler took longer than it may. Counts as transient.
    Timeout,
    /// The relay stopped before the handler ended. Counts as transient.
    Interrupted,
    /// The relay that owned the row vanished.
    LeaseExpired,
    /// The router had no handler that reads the message.
    Unroutable,
    /// What the handler depends on is down. Uses up no attempt.
    Unavailable,
    /// An operator has paused the handler. Uses up no attempt.
    Paused,
    /// The effect may have happened, and it must not be repeated blindly: somebody has to look.
    Uncertain,
    /// An operator decided that it is not to be dispatched.
    Skipped,
    /// A column of the row holds what this version does not know.
    Unreadable,
}

/// Gives an enum the text that stands for it in a column, both ways.
macro_rules! stored_as_text {
    ($type:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $type {
            /// The text in the column, in logs and in metrics.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl FromStr for $type {
            type Err = UnknownText;

            fn from_str(text: &str) -> Result<Self, UnknownText> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(UnknownText { expected: stringify!($type), text: text.to_owned() }),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

stored_as_text!(Status {
    Pending => "pending",
    Claimed => "claimed",
    Dispatched => "dispatched",
    Dead => "dead",
});

stored_as_text!(ErrorClass {
    Transient => "transient",
    Terminal => "terminal",
    Decode => "decode",
    Panic => "panic",
    Timeout => "timeout",
    Interrupted => "interrupted",
    LeaseExpired => "lease-expired",
    Unroutable => "unroutable",
    Unavailable => "unavailable",
    Paused => "paused",
    Uncertain => "uncertain",
    Skipped => "skipped",
    Unreadable => "unreadable",
});

impl ErrorClass {
    /// Whether trying again gives the same answer.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Terminal | Self::Decode | Self::Uncertain | Self::Skipped)
    }

    /// Whether it says nothing about the message: the attempt is given back.
    pub fn uses_no_attempt(self) -> bool {
        matches!(self, Self::Unavailable | Self::Paused)
    }
}

/// A column holds a text that this version does not know; a newer one may have written it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {expected} known to this version")]
pub struct UnknownText {
    expected: &'static str,
    text: String,
}

/// How far the handlers of one row have come; handlers that are still owed are not in it.
pub type Progress = BTreeMap<String, HandlerState>;

/// What became of one handler of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandlerState {
    /// It succeeded and does not run again.
    Done,
    /// It refused the message for good and does not run again.
    Refused,
}

/// A row that a relay owns for the time of its lease.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedRow {
    /// Key of the row.
    pub id: RowId,
    /// The message.
    pub envelope: Envelope,
    /// Which try this is, from 1; it was counted when the row was claimed.
    pub attempts: u32,
    /// How often the row was ever claimed. Never given back, so it grows with every owner: hand it to other systems
    /// as a fencing number.
    pub claims: i64,
    /// Handlers that do not run again.
    pub progress: Progress,
    /// The dead letter that this row replays.
    pub replay_of: Option<RowId>,
}

/// A claimed row of which some column holds what this version does not know; a newer one may have written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRow {
    /// The row.
    pub id: RowId,
    /// Which try this is, from 1.
    pub attempts: u32,
    /// Which column, and why. Never its value.
    pub error: String,
}

/// A row that has just died, for alerts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Key of the row: what an operator's verbs take.
    pub id: RowId,
    /// The message, unless the row could not be read.
    pub message: Option<Box<Envelope>>,
    /// Tries that it had.
    pub attempts: u32,
    /// Why it died.
    pub class: ErrorClass,
    /// The error, without any value of the payload.
    pub error: String,
}

impl DeadLetter {
    /// A claimed row that died.
    pub fn of(row: &ClaimedRow, class: ErrorClass, error: &str) -> Self {
        let message = Some(Box::new(row.envelope.clone()));
        Self { id: row.id, message, attempts: row.attempts, class, error: error.to_owned() }
    }

    /// A row that this version cannot read, and that died.
    pub fn unreadable(row: &UnreadableRow) -> Self {
        let (class, error) = (ErrorClass::Unreadable, row.error.clone());
        Self { id: row.id, message: None, attempts: row.attempts, class, error }
    }

    /// `orders.order-placed.v2`, unless the row could not be read.
    pub fn logical_name(&self) -> Option<String> {
        self.message.as_ref().map(|message| message.logical_name())
    }
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = self.logical_name().unwrap_or_else(|| "a message that cannot be read".to_owned());
        let Self { id, attempts, class, error, .. } = self;
        write!(f, "outbox row {id} ({event}) is dead after {attempts} attempts, {class}: {error}")
    }
}

/// A whole row, as an operator sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutboxRow {
    /// Key of the row.
    pub id: RowId,
    /// The message.
    pub envelope: Envelope,
    /// Where it stands.
    pub status: Status,
    /// Tries so far; 0 = never claimed.
    pub attempts: u32,
    /// Claims so far.
    pub claims: i64,
    /// Not claimed before this time (database clock).
    pub available_at: DateTime<Utc>,
    /// The claim, while there is one.
    pub lease: Option<Lease>,
    /// When it was stored (database clock).
    pub created_at: DateTime<Utc>,
    /// When it became dispatched or dead.
    pub finished_at: Option<DateTime<Utc>>,
    /// Handlers that do not run again.
    pub progress: Progress,
    /// What went wrong last: its class and its text, at most 2,000 characters.
    pub last_error: Option<(ErrorClass, String)>,
    /// The dead letter that this row replays.
    pub replay_of: Option<RowId>,
    /// Who replayed (on the replay) or skipped (on the row itself), and why.
    pub operated: Option<Operated>,
    /// When a dead letter stopped to be owed: its replay was dispatched, or it was skipped.
    pub resolved_at: Option<DateTime<Utc>>,
}

/// An operator's word, kept in the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operated {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

impl OutboxRow {
    /// A row that has just been written.
    pub fn pending(id: RowId, envelope: Envelope, available_at: DateTime<Utc>) -> Self {
        Self {
            id,
            envelope,
            status: Status::Pending,
            attempts: 0,
            claims: 0,
            available_at,
            lease: None,
            created_at: available_at,
            finished_at: None,
            progress: Progress::new(),
            last_error: None,
            replay_of: None,
            operated: None,
            resolved_at: None,
        }
    }
}

/// Ownership of a row for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// Proof of the claim.
    pub token: LeaseToken,
    /// The relay that claimed it.
    pub claimed_by: String,
    /// When it ends (database clock).
    pub expires_at: DateTime<Utc>,
    /// Whether the relay runs nothing beside this row: the row was taken over from an expired lease.
    pub isolated: bool,
}

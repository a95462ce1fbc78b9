//! What an operator may do to a row, by its state.

use crate::row::Status;

/// What a verb needs to know of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowState {
    /// Where it stands.
    pub status: Status,
    /// Whether it is a dead letter that is not owed any more.
    pub resolved: bool,
    /// Whether a replay of it exists.
    pub replayed: bool,
    /// Whether its lease has expired, by the database's clock; false when there is none.
    pub lease_expired: bool,
}

/// Why a verb does not fit, and what does.
pub type Problem = &'static str;

const RESOLVED: Problem = "and resolved already; there is nothing left to do";
const REPLAYED: Problem = "and replayed already; look after its replay instead";

impl RowState {
    /// # Errors
    ///
    /// Why the row cannot be replayed.
    pub fn replay(self) -> Result<(), Problem> {
        match self {
            Self { status: Status::Dead, resolved: true, .. } => Err(RESOLVED),
            Self { status: Status::Dead, replayed: true, .. } => Err(REPLAYED),
            Self { status: Status::Dead, .. } => Ok(()),
            _ => Err("and only a dead row can be replayed"),
        }
    }

    /// # Errors
    ///
    /// Why the row cannot be skipped.
    pub fn skip(self) -> Result<(), Problem> {
        match self {
            Self { status: Status::Dead, resolved: true, .. } => Err(RESOLVED),
            Self { status: Status::Dead, replayed: true, .. } => Err(REPLAYED),
            Self { status: Status::Dead | Status::Pending, .. } => Ok(()),
            Self { status: Status::Claimed, .. } => {
                Err("and a relay may be handling it; wait for it, or release it once its lease has expired")
            }
            Self { status: Status::Dispatched, .. } => Err("so there is nothing to skip"),
        }
    }

    /// # Errors
    ///
    /// Why the row cannot be made due.
    pub fn retry_now(self) -> Result<(), Problem> {
        match self.status {
            Status::Pending => Ok(()),
            Status::Claimed => Err("so it is being tried already"),
            Status::Dispatched => Err("so there is nothing to try"),
            Status::Dead => Err("and its attempts are over; replay it"),
        }
    }

    /// # Errors
    ///
    /// Why the row cannot be released.
    pub fn release(self) -> Result<(), Problem> {
        match self {
            Self { status: Status::Claimed, lease_expired: true, .. } => Ok(()),
            Self { status: Status::Claimed, .. } => {
                Err("and its lease has not expired, so its relay may be handling it")
            }
            _ => Err("and only a claimed row can be released"),
        }
    }
}

//! The state machine of a row, as pure functions. Stores do what is decided here and decide nothing themselves.
//!
//! ```text
//! pending  --claim: attempts+1, lease-->                 claimed
//! claimed  --every owed handler done-->                  dispatched
//! claimed  --some failed, attempts left-->               pending, later
//! claimed  --what it needs is down or paused-->          pending, later, attempt given back
//! claimed  --refused, or attempts used up-->             dead
//! claimed  --release: not started-->                     pending, attempt given back
//! claimed  --renew: its handlers still run-->            claimed, for longer
//! claimed  --lease expired-->                            claimed anew and run alone, or dead
//! ```

mod operate;
pub mod order;

pub use operate::{Problem, RowState};

use crate::{
    backoff::RetryPolicy,
    row::{ClaimedRow, ErrorClass, HandlerState, Progress, UnreadableRow},
};
use std::time::Duration;

/// The longest error text that is stored, in characters.
pub const MAX_ERROR_CHARS: usize = 2_000;

/// The error text of an attempt whose relay vanished.
pub const LEASE_EXPIRED: &str =
    "the lease expired before the relay reported: it crashed, was stopped, or was cut off from the database";

/// The error text of a pending row that an operator gave up.
pub const SKIPPED: &str = "skipped by an operator before it was dispatched";

/// The error text of a row that ended without a word from any handler.
const NOTHING_REPORTED: &str = "no handler reported anything";

/// What one handler made of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerReport {
    /// The handler; `None` when the message reached none.
    pub handler: Option<String>,
    /// What came of it.
    pub result: Result<(), Failure>,
}

/// A failed attempt of one handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub class: ErrorClass,
    /// The error's text, sanitised by [`Failure::new`].
    pub error: String,
    /// The delay that the handler asked for.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure with a text that every database can store: no NUL, at most [`MAX_ERROR_CHARS`] characters.
    pub fn new(class: ErrorClass, error: &str) -> Self {
        let error = error.chars().filter(|c| *c != '\0').take(MAX_ERROR_CHARS).collect();
        Self { class, error, retry_after: None }
    }
}

/// A failed attempt, as it is kept in the history of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Which handler failed; `None` when the message reached none.
    pub handler: Option<String>,
    /// What kind of failure.
    pub class: ErrorClass,
    /// The error's text.
    pub error: String,
}

/// What happens to a claimed row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Transition {
    /// Every handler has succeeded.
    Dispatched,
    /// Every handler has succeeded, and dispatched rows are not kept.
    Deleted,
    /// Try again later.
    Retry {
        /// From now, by the database's clock.
        delay: Duration,
        /// What the row keeps of the attempt.
        outcome: AttemptOutcome,
    },
    /// Try again later, and give the attempt back: what a handler needs is down, or the handler is paused.
    Wait {
        /// From now, by the database's clock.
        delay: Duration,
        /// What the row keeps of the attempt.
        outcome: AttemptOutcome,
    },
    /// Keep as a dead letter.
    Dead(AttemptOutcome),
    /// Give back a row that was not started, and the attempt with it.
    Release,
}

/// What a row keeps of an attempt that did not end it well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptOutcome {
    /// Handlers that do not run again; all others are owed. It is added to what the row has: progress only grows, and what
    /// is stored stays, because a handler with a transaction of its own may have written it meanwhile.
    pub progress: Progress,
    /// What failed in this attempt, for the history.
    pub failed: Vec<FailedAttempt>,
    /// The row's last error from now on; `None` leaves the one that it has. A refusal is never replaced by an error
    /// that may pass, because the refusal is why the row will be dead.
    pub last_error: Option<(ErrorClass, String)>,
}

impl AttemptOutcome {
    /// An outcome whose last error is the first refusal, or else the first failure. A failure that uses up no attempt
    /// is no part of the history.
    pub fn new(progress: Progress, mut failed: Vec<FailedAttempt>) -> Self {
        let rank = |failed: &&FailedAttempt| match failed.class {
            class if class.is_final() => 0,
            class if class.uses_no_attempt() => 2,
            _ => 1,
        };
        let last_error = failed.iter().min_by_key(rank).map(|failed| (failed.class, failed.error.clone()));
        failed.retain(|failed| !failed.class.uses_no_attempt());
        Self { progress, failed, last_error }
    }

    /// Why the attempt did not end the row well, for people. Without an error of its own the row was refused before.
    pub(crate) fn why(&self) -> (Option<ErrorClass>, &str) {
        let earlier = (None, "refused in an earlier attempt");
        self.last_error.as_ref().map_or(earlier, |(class, error)| (Some(*class), error))
    }
}

/// Decides what becomes of a row from what its handlers reported. `chance` in 0..=1 spreads the retry.
pub fn decide(row: &ClaimedRow, reports: &[HandlerReport], policy: &RetryPolicy, chance: f64) -> Transition {
    let outcome = outcome(row, reports);
    let failures = || reports.iter().filter_map(|report| report.result.as_ref().err());
    let hint = || {
        failures().filter(|failure| !failure.class.is_final()).filter_map(|failure| failure.retry_after).max()
    };
    let may_pass = outcome.failed.iter().any(|failed| !failed.class.is_final());
    let waits = failures().any(|failure| failure.class.uses_no_attempt());
    // A row that has no progress and no report was not handled, whatever the reason.
    let nothing_known = outcome.progress.is_empty() && reports.is_empty();
    let all_done = outcome.progress.values().all(|state| *state == HandlerState::Done);
    if may_pass || nothing_known {
        if row.attempts < policy.max_attempts {
            Transition::Retry { delay: policy.delay_or(hint(), row.attempts, chance), outcome }
        } else {
            Transition::Dead(outcome)
        }
    } else if waits {
        Transition::Wait { delay: policy.delay_or(hint(), 1, chance), outcome }
    } else if all_done {
        Transition::Dispatched
    } else {
        Transition::Dead(outcome)
    }
}

fn outcome(row: &ClaimedRow, reports: &[HandlerReport]) -> AttemptOutcome {
    let mut progress = row.progress.clone();
    let mut failed = Vec::new();
    for HandlerReport { handler, result } in reports {
        let state = match result {
            Ok(()) => Some(HandlerState::Done),
            Err(failure) if failure.class.is_final() => Some(HandlerState::Refused),
            Err(_) => None,
        };
        if let (Some(handler), Some(state)) = (handler, state) {
            progress.insert(handler.clone(), state);
        }
        if let Err(Failure { class, error, .. }) = result {
            failed.push(FailedAttempt { handler: handler.clone(), class: *class, error: error.clone() });
        }
    }
    let mut outcome = AttemptOutcome::new(progress, failed);
    if row.progress.values().any(|state| *state == HandlerState::Refused) {
        outcome.last_error.take_if(|(class, _)| !class.is_final());
    } else if outcome.progress.is_empty() && reports.is_empty() {
        outcome.last_error = Some((ErrorClass::Unroutable, NOTHING_REPORTED.to_owned()));
    }
    outcome
}

/// Decides what becomes of a row that this version cannot read: it waits for one that can, and is a dead letter when its
/// attempts are used up.
pub fn decide_unreadable(row: &UnreadableRow, policy: &RetryPolicy, chance: f64) -> Transition {
    let class = ErrorClass::Unreadable;
    let error = Failure::new(class, &row.error).error;
    // No progress: what the column holds, if it is that one, is left as it is.
    let outcome = AttemptOutcome::new(Progress::new(), vec![FailedAttempt { handler: None, class, error }]);
    if row.attempts < policy.max_attempts {
        Transition::Retry { delay: policy.delay(row.attempts, chance), outcome }
    } else {
        Transition::Dead(outcome)
    }
}

/// What happens to a row whose lease has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Claim it anew, with nothing beside it, so that a crash can be laid at its door.
    RunAlone,
    /// It used up its attempts and was alone when the relay vanished.
    Dead,
}

/// Decides what becomes of a row whose lease has expired.
///
/// A row dies of crashes only when it ran alone: one that merely shared a batch with the culprit is always tried
/// once more, even beyond the cap.
pub fn decide_expired(attempts: u32, isolated: bool, max_attempts: u32) -> Expiry {
    if isolated && attempts >= max_attempts { Expiry::Dead } else { Expiry::RunAlone }
}

#[cfg(test)]
mod tests;

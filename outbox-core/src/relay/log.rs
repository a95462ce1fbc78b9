//! What a relay logs of rows and of the store. Never a payload.

use crate::{
    decide::{AttemptOutcome, Transition},
    row::{ClaimedRow, ErrorClass},
    store::StoreError,
};

pub(crate) fn log_failure(doing: &'static str, error: &StoreError) {
    tracing::error!(doing, %error, "the outbox store failed; the relay tries again");
}

pub(crate) fn log_transition(row: &ClaimedRow, transition: &Transition) {
    let (id, message_id, attempt) = (row.id.0, row.envelope.message_id, row.attempts);
    let event = row.envelope.logical_name();
    match transition {
        Transition::Dispatched | Transition::Deleted | Transition::Release => {}
        Transition::Wait { delay, outcome } => {
            let (class, error) = why(outcome);
            tracing::debug!(id, %message_id, event, ?delay, class, error, "a row waits");
        }
        Transition::Retry { delay, outcome } => {
            let (class, error) = why(outcome);
            tracing::warn!(id, %message_id, event, attempt, ?delay, class, error, "an attempt failed and is tried again");
        }
        Transition::Dead(outcome) => {
            let (class, error) = why(outcome);
            tracing::error!(id, %message_id, event, attempt, class, error, "a row is dead and waits for an operator");
        }
    }
}

fn why(outcome: &AttemptOutcome) -> (&'static str, &str) {
    let (class, error) = outcome.why();
    (class.map_or("", ErrorClass::as_str), error)
}

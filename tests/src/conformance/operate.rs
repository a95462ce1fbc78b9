//! An operator's verbs: each does what it says to rows in the right state, and nothing to others.
#![allow(missing_docs)] // The names say it all.

use super::{at, claim, mark, take_over};
use crate::{events::placed, subject::Subject};
use outbox_core::{
    Envelope, ErrorClass, OutboxRow, OutboxStore, RowId, Status,
    decide::{AttemptOutcome, FailedAttempt, RowState, SKIPPED, Transition},
    row::{HandlerState, Operated, Progress},
    store::{OperateError, OutboxOperator, Replay},
};
use std::time::Duration;

fn refused() -> Transition {
    let progress: Progress =
        [("a.done".to_owned(), HandlerState::Done), ("a.refused".to_owned(), HandlerState::Refused)].into();
    let class = ErrorClass::Terminal;
    let failed = FailedAttempt { handler: Some("a.refused".into()), class, error: "no".into() };
    Transition::Dead(AttemptOutcome::new(progress, vec![failed]))
}

/// Stores a message and makes it a dead letter at second 0.
async fn dead(subject: &impl Subject) -> (Envelope, RowId) {
    let envelope = placed(1);
    let id = subject.append(std::slice::from_ref(&envelope)).await[0];
    let (token, rows) = claim(subject, 1, at(0)).await;
    mark(subject, token, &rows, &refused(), at(0)).await;
    (envelope, id)
}

fn replay(id: RowId) -> Replay<'static> {
    Replay { id, by: "ann", reason: Some("mended"), all_handlers: false }
}

/// The row of a replay, which is the only one that can be claimed.
async fn finish(subject: &impl Subject, transition: &Transition, second: i64) -> RowId {
    let (token, rows) = claim(subject, 1, at(second)).await;
    mark(subject, token, &rows, transition, at(second)).await;
    rows[0].id
}

pub async fn a_replay_is_a_new_message_that_is_linked_to_the_dead_one(subject: &impl Subject) {
    let (envelope, id) = dead(subject).await;
    let before = subject.row(&envelope).await;
    let new = subject.store().replay(&replay(id)).await.unwrap();
    assert_eq!(subject.row(&envelope).await, before, "a dead letter is not edited");
    let (_, rows) = claim(subject, 9, at(1)).await;
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.id, row.attempts, row.claims, row.replay_of), (new, 1, 1, Some(id)));
    assert_eq!(row.progress, [("a.done".to_owned(), HandlerState::Done)].into(), "only what is owed runs");
    assert_ne!(row.envelope.message_id, envelope.message_id);
    assert_eq!(row.envelope.causation_id, Some(envelope.message_id));
    let conversation = envelope.message_id.to_string();
    assert_eq!(row.envelope.correlation_id, Some(conversation), "it belongs to the dead one's conversation");
    assert_eq!((&row.envelope.payload, &row.envelope.event_type), (&envelope.payload, &envelope.event_type));
    let row = subject.row(&row.envelope).await;
    assert_eq!(row.operated, Some(Operated { by: "ann".into(), reason: Some("mended".into()) }));
}

pub async fn a_replay_for_all_handlers_forgets_which_have_succeeded(subject: &impl Subject) {
    let (_, id) = dead(subject).await;
    subject.store().replay(&Replay { all_handlers: true, ..replay(id) }).await.unwrap();
    assert_eq!(claim(subject, 9, at(1)).await.1[0].progress, Progress::new());
}

pub async fn a_replay_that_is_dispatched_resolves_the_whole_chain(subject: &impl Subject) {
    for (second, last) in [(10, Transition::Dispatched), (20, Transition::Deleted)] {
        let (envelope, id) = dead(subject).await;
        subject.store().replay(&replay(id)).await.unwrap();
        let again = finish(subject, &refused(), second + 1).await;
        assert_eq!(subject.row(&envelope).await.resolved_at, None);
        subject.store().replay(&replay(again)).await.unwrap();
        finish(subject, &last, second + 2).await;
        assert_eq!(subject.row(&envelope).await.resolved_at, at(second + 2));
        let state = state_of(subject, again).await;
        assert!(
            matches!(state, Err(OperateError::State { status: Status::Dead, problem, .. }) if problem.contains("resolved"))
        );
    }
}

/// What stands against a replay tells the state of a row of which only the id is known.
async fn state_of(subject: &impl Subject, id: RowId) -> Result<RowId, OperateError> {
    subject.store().replay(&replay(id)).await
}

pub async fn a_replay_whose_lease_was_lost_resolves_nothing(subject: &impl Subject) {
    let (envelope, id) = dead(subject).await;
    subject.store().replay(&replay(id)).await.unwrap();
    let (token, rows) = claim(subject, 1, at(1)).await;
    subject.store().take_over(&take_over(at(100))).await.unwrap();
    for late in [Transition::Dispatched, Transition::Deleted] {
        assert_eq!(mark(subject, token, &rows, &late, at(101)).await.lost, 1);
    }
    assert_eq!(subject.row(&envelope).await.resolved_at, None);
}

pub async fn replays_at_the_same_instant_make_one_row(subject: &impl Subject) {
    let (_, id) = dead(subject).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = subject.store().clone();
        tasks.spawn(async move { store.replay(&replay(id)).await });
    }
    let results = tasks.join_all().await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    for error in results.into_iter().filter_map(Result::err) {
        assert!(matches!(error, OperateError::State { .. }), "{error}");
    }
    assert_eq!(claim(subject, 9, at(1)).await.1.len(), 1);
}

pub async fn a_skipped_row_is_resolved_with_those_that_it_replays(subject: &impl Subject) {
    let (envelope, id) = dead(subject).await;
    let new = subject.store().replay(&replay(id)).await.unwrap();
    subject.store().skip(new, "ann", Some("not worth it"), at(5)).await.unwrap();
    assert_eq!(subject.row(&envelope).await.resolved_at, at(5));
    assert_eq!(claim(subject, 9, at(6)).await.1, []);
}

pub async fn a_pending_row_that_is_skipped_is_a_resolved_dead_letter(subject: &impl Subject) {
    let envelope = placed(1);
    let id = subject.append(std::slice::from_ref(&envelope)).await[0];
    subject.store().skip(id, "ann", None, at(5)).await.unwrap();
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.finished_at, row.resolved_at), (Status::Dead, at(5), at(5)));
    assert_eq!(row.last_error, Some((ErrorClass::Skipped, SKIPPED.to_owned())));
    assert_eq!(row.operated, Some(Operated { by: "ann".into(), reason: None }));
}

pub async fn a_row_in_backoff_can_be_made_due(subject: &impl Subject) {
    let envelope = placed(1);
    let id = subject.append(std::slice::from_ref(&envelope)).await[0];
    let later = Transition::Retry { delay: Duration::from_hours(1), outcome: AttemptOutcome::default() };
    finish(subject, &later, 0).await;
    assert_eq!(claim(subject, 1, at(1)).await.1, []);
    subject.store().retry_now(id, at(1)).await.unwrap();
    assert_eq!(subject.row(&envelope).await.available_at, at(1).unwrap());
    assert_eq!(claim(subject, 1, at(1)).await.1[0].attempts, 2);
}

pub async fn a_row_is_released_only_once_its_lease_has_expired(subject: &impl Subject) {
    let envelope = placed(1);
    let id = subject.append(std::slice::from_ref(&envelope)).await[0];
    claim(subject, 1, at(0)).await;
    let live = subject.store().release(id, at(59)).await;
    assert!(matches!(live, Err(OperateError::State { status: Status::Claimed, .. })), "{live:?}");
    assert!(subject.row(&envelope).await.lease.is_some());
    subject.store().release(id, at(60)).await.unwrap();
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.attempts, row.claims, row.lease), (Status::Pending, 1, 1, None));
    let history = subject.history().await;
    assert_eq!((history.len(), history[0].failed.class), (1, ErrorClass::LeaseExpired));
}

/// Every state that a verb can meet, at second 100.
const STATES: [(&str, RowState); 8] = [
    ("pending", state(Status::Pending, false, false, false)),
    ("in backoff", state(Status::Pending, false, false, false)),
    ("claimed", state(Status::Claimed, false, false, false)),
    ("expired", state(Status::Claimed, false, false, true)),
    ("dispatched", state(Status::Dispatched, false, false, false)),
    ("dead", state(Status::Dead, false, false, false)),
    ("replayed", state(Status::Dead, false, true, false)),
    ("skipped", state(Status::Dead, true, false, false)),
];

const fn state(status: Status, resolved: bool, replayed: bool, lease_expired: bool) -> RowState {
    RowState { status, resolved, replayed, lease_expired }
}

/// A row in that state, alone in the store's claimable rows.
async fn bring(subject: &impl Subject, name: &str) -> (Envelope, RowId) {
    if matches!(name, "dead" | "replayed" | "skipped") {
        let (envelope, id) = dead(subject).await;
        match name {
            "replayed" => {
                let new = subject.store().replay(&replay(id)).await.unwrap();
                // Out of the way of the next claim; still live.
                let later =
                    Transition::Retry { delay: Duration::from_hours(9), outcome: AttemptOutcome::default() };
                assert_eq!(finish(subject, &later, 1).await, new);
            }
            "skipped" => subject.store().skip(id, "ann", None, at(1)).await.unwrap(),
            _ => {}
        }
        return (envelope, id);
    }
    let envelope = placed(1);
    let id = subject.append(std::slice::from_ref(&envelope)).await[0];
    let later = Transition::Retry { delay: Duration::from_hours(1), outcome: AttemptOutcome::default() };
    match name {
        "in backoff" => drop(finish(subject, &later, 0).await),
        "dispatched" => drop(finish(subject, &Transition::Dispatched, 0).await),
        "claimed" => drop(claim(subject, 1, at(90)).await),
        "expired" => drop(claim(subject, 1, at(0)).await),
        _ => {}
    }
    (envelope, id)
}

async fn operate(subject: &impl Subject, verb: &str, id: RowId) -> Result<(), OperateError> {
    let store = subject.store();
    match verb {
        "replay" => store.replay(&replay(id)).await.map(drop),
        "skip" => store.skip(id, "ann", None, at(100)).await,
        "retry-now" => store.retry_now(id, at(100)).await,
        _ => store.release(id, at(100)).await,
    }
}

pub async fn every_verb_obeys_its_rule_in_every_state(subject: &impl Subject) {
    for verb in ["replay", "skip", "retry-now", "release"] {
        for (name, state) in STATES {
            // Whatever stands in the way is taken away, so that a claim finds the new row.
            while !claim(subject, 100, at(0)).await.1.is_empty() {}
            let (envelope, id) = bring(subject, name).await;
            let before = subject.row(&envelope).await;
            let result = operate(subject, verb, id).await;
            let rule = match verb {
                "replay" => state.replay(),
                "skip" => state.skip(),
                "retry-now" => state.retry_now(),
                _ => state.release(),
            };
            match (rule, result) {
                (Ok(()), Ok(())) => {}
                (Err(expected), Err(OperateError::State { id: of, status, problem })) => {
                    assert_eq!((of, status, problem), (id, state.status, expected), "{verb} of {name}");
                    assert_eq!(subject.row(&envelope).await, before, "{verb} of {name}");
                }
                (rule, result) => panic!("{verb} of a row that is {name}: {rule:?}, but {result:?}"),
            }
        }
        let nothing = operate(subject, verb, RowId(i64::MAX)).await;
        assert!(matches!(nothing, Err(OperateError::NotFound(RowId(i64::MAX)))), "{nothing:?}");
    }
}

pub async fn who_and_why_are_checked_before_anything_is_written(subject: &impl Subject) {
    let (envelope, id) = dead(subject).await;
    let before: OutboxRow = subject.row(&envelope).await;
    let long = "x".repeat(2_001);
    for (by, reason) in [("", None), ("a\0", None), (&*long, None), ("ann", Some(&*long)), ("ann", Some(""))]
    {
        let store = subject.store();
        let replayed = store.replay(&Replay { by, reason, ..replay(id) }).await;
        assert!(matches!(replayed, Err(OperateError::Text { .. })), "{by:?} {reason:?}");
        let skipped = store.skip(id, by, reason, None).await;
        assert!(matches!(skipped, Err(OperateError::Text { .. })), "{by:?} {reason:?}");
    }
    assert_eq!(subject.row(&envelope).await, before);
    subject.store().replay(&Replay { reason: Some(&long[..2_000]), ..replay(id) }).await.unwrap();
}

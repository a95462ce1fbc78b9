//! claimed → dispatched | pending | dead.
#![allow(missing_docs)] // The names say it all.

use super::{at, claim, mark, take_over};
use crate::{
    events::{placed, placed_many},
    subject::Subject,
};
use chrono::TimeDelta;
use outbox_core::{
    ErrorClass, OutboxStore, Status,
    decide::{AttemptOutcome, FailedAttempt, MAX_ERROR_CHARS, Transition},
    row::{HandlerState, Progress},
    store::{Mark, MarkReport, TakenOver},
};
use std::time::Duration;

fn failed(handler: &str, class: ErrorClass, error: &str) -> FailedAttempt {
    FailedAttempt { handler: Some(handler.into()), class, error: error.into() }
}

fn progress() -> Progress {
    [("mail.send".to_owned(), HandlerState::Done), ("log.write".to_owned(), HandlerState::Refused)].into()
}

pub async fn a_dispatched_row_is_finished_and_keeps_no_error(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    let again = Transition::Retry {
        delay: Duration::ZERO,
        outcome: AttemptOutcome::new(Progress::new(), vec![failed("a.b", ErrorClass::Transient, "no")]),
    };
    mark(subject, token, &rows, &again, at(0)).await;
    let (token, rows) = claim(subject, 1, at(1)).await;
    let report = mark(subject, token, &rows, &Transition::Dispatched, at(2)).await;
    assert_eq!(report, MarkReport { marked: 1, lost: 0 });
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.finished_at, row.attempts), (Status::Dispatched, at(2), 2));
    assert_eq!((row.lease, row.last_error), (None, None));
    assert_eq!(claim(subject, 1, at(9999)).await.1.len(), 0);
}

pub async fn a_retried_row_waits_and_remembers_its_progress(subject: &impl Subject) {
    let envelope = placed(1);
    let ids = subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    let attempts = vec![
        failed("a.b", ErrorClass::Transient, "no \"quotes\" ü"),
        failed("c.d", ErrorClass::Panic, "boom"),
    ];
    let later = Transition::Retry {
        delay: Duration::from_millis(1500),
        outcome: AttemptOutcome::new(progress(), attempts.clone()),
    };
    mark(subject, token, &rows, &later, at(0)).await;
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.attempts, row.finished_at, row.lease), (Status::Pending, 1, None, None));
    assert_eq!(Some(row.available_at), at(0).map(|now| now + TimeDelta::milliseconds(1500)));
    assert_eq!(row.last_error, Some((ErrorClass::Transient, "no \"quotes\" ü".into())));
    let (_, rows) = claim(subject, 1, at(2)).await;
    assert_eq!((rows[0].attempts, rows[0].claims, &rows[0].progress), (2, 2, &progress()));
    let history = subject.history().await;
    assert_eq!(history.iter().map(|entry| entry.failed.clone()).collect::<Vec<_>>(), attempts);
    assert!(
        history.iter().all(|entry| (entry.id, entry.attempt, entry.relay.as_str()) == (ids[0], 1, "relay-1"))
    );
}

pub async fn a_dead_row_is_kept_with_its_reason_and_never_claimed_again(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    // Four bytes a character, which not every charset of a server has.
    let text = "🚀".repeat(MAX_ERROR_CHARS);
    let dead =
        Transition::Dead(AttemptOutcome::new(progress(), vec![failed("a.b", ErrorClass::Decode, &text)]));
    mark(subject, token, &rows, &dead, at(5)).await;
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.finished_at, row.attempts), (Status::Dead, at(5), 1));
    assert_eq!((row.last_error, row.progress), (Some((ErrorClass::Decode, text)), progress()));
    assert_eq!(claim(subject, 1, at(9999)).await.1.len(), 0);
    assert_eq!(subject.store().take_over(&take_over(at(9999))).await.unwrap(), TakenOver::default());
    assert_eq!(subject.history().await.len(), 1);
}

pub async fn a_released_row_gets_its_attempt_back_but_not_its_claim(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    assert_eq!(mark(subject, token, &rows, &Transition::Release, at(1)).await.marked, 1);
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.attempts, row.claims, row.lease), (Status::Pending, 0, 1, None));
    let (_, rows) = claim(subject, 1, at(1)).await;
    assert_eq!((rows[0].attempts, rows[0].claims), (1, 2));
    assert_eq!(subject.history().await, []);
}

pub async fn a_mark_after_the_lease_was_lost_changes_nothing(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (stale, rows) = claim(subject, 1, at(0)).await;
    // The same relay claims its own expired row again: its name is not enough to tell the two claims apart.
    let taken = subject.store().take_over(&take_over(at(61))).await.unwrap();
    assert_eq!(taken.row.as_ref().map(|row| row.claims), Some(2));
    let owned = subject.row(&envelope).await;
    let history = subject.history().await;
    let transitions = [
        Transition::Dispatched,
        Transition::Release,
        Transition::Retry {
            delay: Duration::ZERO,
            outcome: AttemptOutcome::new(progress(), vec![failed("a.b", ErrorClass::Panic, "x")]),
        },
        Transition::Dead(AttemptOutcome::new(progress(), vec![failed("a.b", ErrorClass::Terminal, "x")])),
    ];
    for transition in transitions {
        let report = mark(subject, stale, &rows, &transition, at(62)).await;
        assert_eq!(report, MarkReport { marked: 0, lost: 1 }, "{transition:?}");
        assert_eq!(subject.row(&envelope).await, owned, "{transition:?}");
        assert_eq!(subject.history().await, history, "{transition:?}");
    }
}

pub async fn marks_of_several_claims_and_kinds_are_written_together(subject: &impl Subject) {
    let envelopes = placed_many(6);
    subject.append(&envelopes).await;
    let mut marks = Vec::new();
    for _ in 0..2 {
        let (token, rows) = claim(subject, 3, at(0)).await;
        let transitions = [
            Transition::Dispatched,
            Transition::Release,
            Transition::Dead(AttemptOutcome::new(
                Progress::new(),
                vec![failed("a.b", ErrorClass::Terminal, "no")],
            )),
        ];
        marks.extend(rows.iter().zip(transitions).map(|(row, transition)| Mark {
            id: row.id,
            token,
            transition,
            replay_of: None,
        }));
    }
    assert_eq!(subject.store().mark(&marks, at(1)).await.unwrap(), MarkReport { marked: 6, lost: 0 });
    let mut statuses = Vec::new();
    for envelope in &envelopes {
        statuses.push(subject.row(envelope).await.status);
    }
    assert_eq!(statuses, [Status::Dispatched, Status::Pending, Status::Dead].repeat(2));
    assert_eq!(subject.store().mark(&[], at(1)).await.unwrap(), MarkReport::default());
}

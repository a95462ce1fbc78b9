//! claimed with an expired lease → claimed anew and alone, or dead.
#![allow(missing_docs)] // The names say it all.

use super::{at, claim, ids, mark, take_over};
use crate::{
    events::{placed, placed_many},
    subject::Subject,
};
use outbox_core::{
    ErrorClass, OutboxStore, Status,
    decide::{AttemptOutcome, Transition},
    store::TakenOver,
};

pub async fn rows_of_a_vanished_relay_are_taken_over_one_at_a_time(subject: &impl Subject) {
    let rows = subject.append(&placed_many(3)).await;
    claim(subject, 10, at(0)).await;
    assert!(!subject.store().has_expired(&take_over(at(59))).await.unwrap());
    assert_eq!(subject.store().take_over(&take_over(at(59))).await.unwrap(), TakenOver::default());
    assert!(subject.store().has_expired(&take_over(at(61))).await.unwrap());
    for id in rows {
        let taken = subject.store().take_over(&take_over(at(61))).await.unwrap();
        let row = taken.row.unwrap();
        assert_eq!((row.id, row.attempts, row.claims, taken.buried), (id, 2, 2, vec![]));
    }
    assert!(!subject.store().has_expired(&take_over(at(61))).await.unwrap());
}

pub async fn a_take_over_writes_what_became_of_the_lost_attempt(subject: &impl Subject) {
    let envelope = placed(1);
    let rows = subject.append(std::slice::from_ref(&envelope)).await;
    claim(subject, 10, at(0)).await;
    let request = take_over(at(61));
    subject.store().take_over(&request).await.unwrap();
    let lease = subject.row(&envelope).await.lease.unwrap();
    assert_eq!((lease.token, lease.isolated), (request.claim.token, true));
    let history = subject.history().await;
    assert_eq!(history.len(), 1);
    assert_eq!((history[0].id, history[0].attempt, history[0].relay.as_str()), (rows[0], 1, "relay-1"));
    assert_eq!((history[0].failed.class, &history[0].failed.handler), (ErrorClass::LeaseExpired, &None));
}

pub async fn a_row_dies_of_crashes_only_from_attempts_in_which_it_ran_alone(subject: &impl Subject) {
    let envelopes = placed_many(2);
    let rows = subject.append(&envelopes).await;
    // Two failures use up attempts, then the relay vanishes in a batch, at the cap of three.
    for second in 0..2 {
        let (token, rows) = claim(subject, 2, at(second)).await;
        let again =
            Transition::Retry { delay: std::time::Duration::ZERO, outcome: AttemptOutcome::default() };
        mark(subject, token, &rows, &again, at(second)).await;
    }
    claim(subject, 2, at(2)).await;
    let first = subject.store().take_over(&take_over(at(100))).await.unwrap();
    assert_eq!((first.row.unwrap().attempts, first.buried), (4, vec![]));
    let second = subject.store().take_over(&take_over(at(100))).await.unwrap().row.unwrap();
    let token = subject.row(&envelopes[1]).await.lease.unwrap().token;
    mark(subject, token, &[second], &Transition::Dispatched, at(101)).await;
    // The first vanishes again, this time alone.
    let last = subject.store().take_over(&take_over(at(200))).await.unwrap();
    let buried: Vec<_> =
        last.buried.iter().map(|letter| (letter.id, letter.class, letter.attempts)).collect();
    assert_eq!((last.row, buried), (None, vec![(rows[0], ErrorClass::LeaseExpired, 4)]));
    let dead = subject.row(&envelopes[0]).await;
    assert_eq!((dead.status, dead.attempts, dead.finished_at), (Status::Dead, 4, at(200)));
    assert_eq!(dead.last_error.map(|(class, _)| class), Some(ErrorClass::LeaseExpired));
    assert_eq!(subject.row(&envelopes[1]).await.status, Status::Dispatched);
}

pub async fn a_row_that_ran_alone_and_failed_is_an_ordinary_row_again(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    claim(subject, 1, at(0)).await;
    let request = take_over(at(61));
    let taken = subject.store().take_over(&request).await.unwrap().row.unwrap();
    let again = Transition::Retry { delay: std::time::Duration::ZERO, outcome: AttemptOutcome::default() };
    mark(subject, request.claim.token, &[taken], &again, at(62)).await;
    let (_, rows) = claim(subject, 1, at(62)).await;
    assert_eq!((rows.len(), rows[0].attempts), (1, 3));
    assert!(!subject.row(&envelope).await.lease.unwrap().isolated);
}

pub async fn take_overs_at_the_same_instant_share_no_row(subject: &impl Subject) {
    subject.append(&placed_many(4)).await;
    claim(subject, 10, at(0)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = subject.store().clone();
        tasks.spawn(async move { store.take_over(&take_over(at(61))).await.unwrap().row });
    }
    let mut rows: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    while let Some(row) = subject.store().take_over(&take_over(at(61))).await.unwrap().row {
        rows.push(row);
    }
    let mut found = ids(&rows);
    found.sort_unstable();
    found.dedup();
    assert_eq!((rows.len(), found.len()), (4, 4));
}

pub async fn an_expired_row_is_found_once_no_due_row_stands_before_it(subject: &impl Subject) {
    subject.append(&placed_many(1)).await;
    let (token, waiting) = claim(subject, 1, at(0)).await;
    let crashed = subject.append(&placed_many(1)).await;
    claim(subject, 1, at(0)).await;
    // The first row is due again, and earlier than the one whose relay vanished.
    mark(subject, token, &waiting, &Transition::Release, at(1)).await;
    assert!(!subject.store().has_expired(&take_over(at(61))).await.unwrap());
    assert_eq!(claim(subject, 1, at(61)).await.1.len(), 1);
    assert_eq!(
        subject.store().take_over(&take_over(at(61))).await.unwrap().row.map(|row| row.id),
        Some(crashed[0])
    );
}

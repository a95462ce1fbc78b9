//! Deleting finished rows, and only those.
#![allow(missing_docs)] // The names say it all.

use super::{at, claim, mark};
use crate::{
    events::{placed, placed_many},
    subject::Subject,
};
use outbox_core::{
    Envelope, ErrorClass, OutboxStore,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::Progress,
    store::Purge,
};
use std::time::Duration;

const WEEK: u64 = 7 * 24 * 60 * 60;

fn purge(limit: u32, now: Option<chrono::DateTime<chrono::Utc>>) -> Purge {
    Purge { older_than: Duration::from_secs(WEEK), limit, now }
}

async fn remain(subject: &impl Subject, envelopes: &[Envelope]) -> Vec<bool> {
    let mut remain = Vec::new();
    for envelope in envelopes {
        remain.push(subject.store().find(envelope.message_id).await.unwrap().is_some());
    }
    remain
}

pub async fn age_alone_proves_nothing(subject: &impl Subject) {
    // Old and dispatched, dead, in backoff, claimed, never touched, and an unordered row that nobody reads.
    let mut envelopes = placed_many(5);
    envelopes.push(Envelope::stored(
        outbox_core::MessageId::new(),
        "nobody.knows-this".into(),
        1,
        "{}".into(),
    ));
    subject.append(&envelopes).await;
    let failed = || vec![FailedAttempt { handler: None, class: ErrorClass::Terminal, error: "no".into() }];
    let transitions = [
        Transition::Dispatched,
        Transition::Dead(AttemptOutcome::new(Progress::new(), failed())),
        Transition::Retry { delay: Duration::ZERO, outcome: AttemptOutcome::new(Progress::new(), failed()) },
    ];
    for transition in transitions {
        let (token, rows) = claim(subject, 1, at(0)).await;
        mark(subject, token, &rows, &transition, at(0)).await;
        if matches!(transition, Transition::Retry { .. }) {
            // The row in backoff comes first again, so it is the one that stays claimed; the next stays pending.
            assert_eq!(claim(subject, 1, at(0)).await.1.len(), 1);
        }
    }
    let year = i64::try_from(WEEK).unwrap() * 52;
    assert_eq!(subject.store().purge(&purge(1000, at(year))).await.unwrap(), 1);
    assert_eq!(remain(subject, &envelopes).await, [false, true, true, true, true, true]);
}

pub async fn a_dispatched_row_stays_for_the_whole_retention(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    mark(subject, token, &rows, &Transition::Dispatched, at(1000)).await;
    let week = i64::try_from(WEEK).unwrap();
    assert_eq!(subject.store().purge(&purge(10, at(1000 + week))).await.unwrap(), 0);
    assert_eq!(subject.store().purge(&purge(10, at(1001 + week))).await.unwrap(), 1);
}

pub async fn a_purge_deletes_at_most_its_limit(subject: &impl Subject) {
    subject.append(&placed_many(10)).await;
    let (token, rows) = claim(subject, 10, at(0)).await;
    mark(subject, token, &rows, &Transition::Dispatched, at(0)).await;
    let year = at(i64::try_from(WEEK).unwrap() * 52);
    let mut deleted = Vec::new();
    for _ in 0..4 {
        deleted.push(subject.store().purge(&purge(4, year)).await.unwrap());
    }
    assert_eq!(deleted, [4, 4, 2, 0]);
}

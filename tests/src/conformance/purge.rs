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
    store::{ClaimRequest, Finished, Purge, Route},
};
use std::time::Duration;

const WEEK: u64 = 7 * 24 * 60 * 60;

fn purge(limit: u32, now: Option<chrono::DateTime<chrono::Utc>>) -> Purge {
    Purge { finished: Finished::Dispatched, older_than: Duration::from_secs(WEEK), limit, now }
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
    assert_eq!(subject.store().purge(&purge(1000, at(year))).await.unwrap().rows, 1);
    assert_eq!(remain(subject, &envelopes).await, [false, true, true, true, true, true]);
}

pub async fn a_dispatched_row_stays_for_the_whole_retention(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    mark(subject, token, &rows, &Transition::Dispatched, at(1000)).await;
    let week = i64::try_from(WEEK).unwrap();
    assert_eq!(subject.store().purge(&purge(10, at(1000 + week))).await.unwrap().rows, 0);
    assert_eq!(subject.store().purge(&purge(10, at(1001 + week))).await.unwrap().rows, 1);
}

pub async fn a_purge_deletes_at_most_its_limit(subject: &impl Subject) {
    subject.append(&placed_many(10)).await;
    let (token, rows) = claim(subject, 10, at(0)).await;
    mark(subject, token, &rows, &Transition::Dispatched, at(0)).await;
    let year = at(i64::try_from(WEEK).unwrap() * 52);
    let mut deleted = Vec::new();
    for _ in 0..4 {
        deleted.push(subject.store().purge(&purge(4, year)).await.unwrap().rows);
    }
    assert_eq!(deleted, [4, 4, 2, 0]);
}

/// Every way in which a row can stand when a purge comes by.
const WAYS: [&str; 6] = ["pending", "claimed", "in backoff", "released", "dispatched", "dead"];

/// Brings a row to stand in this way, at this time.
async fn bring(subject: &impl Subject, way: &'static str, second: i64) -> Envelope {
    // An event of its own, so that a claim finds this row and no other.
    let name: &'static str = format!("purge.{}-at-{second}", way.replace(' ', "-")).leak();
    let envelope = Envelope::stored(outbox_core::MessageId::new(), name.into(), 1, "{}".into());
    subject.append(std::slice::from_ref(&envelope)).await;
    if way == "pending" {
        return envelope;
    }
    let routes = [Route { event_type: name, event_version: 1 }];
    let request = ClaimRequest { routes: &routes, ..super::request(1, at(second)) };
    let rows = subject.store().claim(&request).await.unwrap().rows;
    let failed = vec![FailedAttempt { handler: None, class: ErrorClass::Terminal, error: "no".into() }];
    let outcome = AttemptOutcome::new(Progress::new(), failed);
    let transition = match way {
        "in backoff" => Transition::Retry { delay: Duration::ZERO, outcome },
        "released" => Transition::Release,
        "dispatched" => Transition::Dispatched,
        "dead" => Transition::Dead(outcome),
        _ => return envelope,
    };
    mark(subject, request.token, &rows, &transition, at(second)).await;
    envelope
}

pub async fn a_purge_deletes_exactly_what_was_dispatched_before_the_retention(subject: &impl Subject) {
    let ages = [0, 100, 200, 300];
    let mut rows = Vec::new();
    for way in WAYS {
        for second in ages {
            rows.push((way, second, bring(subject, way, second).await));
        }
    }
    for now in [50, 150, 200, 250, 10_000] {
        let older_than = Duration::from_secs(50);
        let purge = Purge { finished: Finished::Dispatched, older_than, limit: 100, now: at(now) };
        subject.store().purge(&purge).await.unwrap();
        for (way, second, envelope) in &rows {
            let is_there = subject.store().find(envelope.message_id).await.unwrap().is_some();
            let was_purged = *way == "dispatched" && second + 50 < now;
            assert_eq!(is_there, !was_purged, "{way} at {second}, purged at {now}");
        }
    }
}

//! What is late, and why: every row is told once, for what it waits for.
#![allow(missing_docs)] // The names say it all.

use super::{LEASE, at, claim, mark, request};
use crate::{
    events::{OrderPlaced, placed, placed_many},
    subject::Subject,
};
use outbox_core::{
    Envelope, ErrorClass, MessageId, OutboxEvent, OutboxStore,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::{ClaimedRow, LeaseToken, Progress},
    store::{Announcement, EventSignals, OrderedRequest, OutboxOperator, Replay, Signals},
};
use std::{collections::BTreeSet, time::Duration};

fn failed(class: ErrorClass) -> AttemptOutcome {
    let failed = FailedAttempt { handler: None, class, error: "no".into() };
    AttemptOutcome::new(Progress::new(), vec![failed])
}

fn retry(seconds: u64) -> Transition {
    Transition::Retry { delay: Duration::from_secs(seconds), outcome: failed(ErrorClass::Timeout) }
}

fn later(seconds: u64) -> Transition {
    Transition::Retry { delay: Duration::from_secs(seconds), outcome: AttemptOutcome::default() }
}

fn dead(class: ErrorClass) -> Transition {
    Transition::Dead(failed(class))
}

fn unknown() -> Envelope {
    Envelope::stored(MessageId::new(), "nobody.knows-this".into(), 7, "{}".into())
}

async fn claim_ordered(subject: &impl Subject, limit: u32, second: i64) -> (LeaseToken, Vec<ClaimedRow>) {
    let claim = request(limit, at(second));
    let found = subject.store().claim_ordered(&OrderedRequest { claim, after: None }).await.unwrap();
    (claim.token, found.claimed.rows)
}

async fn announce(subject: &impl Subject, proceed: &[&'static str]) {
    let handlers = [("orders.order-placed.v1".to_owned(), BTreeSet::new())].into();
    let lasts = Duration::from_hours(1);
    let announcement = Announcement { relay: "one", handlers: &handlers, proceed, lasts, now: at(0) };
    subject.store().announce(&announcement).await.unwrap();
}

async fn signals(subject: &impl Subject, second: i64) -> Signals {
    let signals = subject.store().signals(at(second)).await.unwrap();
    assert_eq!(Some(signals.at), at(second));
    signals
}

/// Only this event has rows or dead letters.
async fn of_orders(subject: &impl Subject, second: i64) -> EventSignals {
    let signals = signals(subject, second).await;
    let [event] = &signals.events[..] else { panic!("{signals:?}") };
    assert_eq!(event.logical_name(), "orders.order-placed.v1");
    event.clone()
}

pub async fn nothing_waits_in_an_empty_outbox(subject: &impl Subject) {
    let signals = signals(subject, 0).await;
    assert_eq!((signals.events.len(), signals.lag()), (0, Duration::ZERO));
    assert_eq!((signals.blocked.keys(), signals.blocked.is_complete), (0, true));
}

pub async fn every_row_is_counted_once_by_what_it_waits_for(subject: &impl Subject) {
    // One claim whose relay vanishes, then one of every other end.
    subject.append(&placed_many(1)).await;
    claim(subject, 1, at(-120)).await;
    subject.append(&placed_many(7)).await;
    let (token, rows) = claim(subject, 7, at(0)).await;
    let ends = [
        retry(5),
        retry(100),
        later(100),
        dead(ErrorClass::Terminal),
        dead(ErrorClass::Decode),
        Transition::Dispatched,
    ];
    for (row, end) in rows.iter().zip(&ends) {
        mark(subject, token, std::slice::from_ref(row), end, at(0)).await;
    }
    let event = of_orders(subject, 20).await;
    let counts = |event: &EventSignals| {
        let EventSignals { ready, blocked, retrying, scheduled, claimed, expired, .. } = *event;
        [ready, blocked, retrying, scheduled, claimed, expired]
    };
    assert_eq!(counts(&event), [1, 0, 1, 1, 1, 1]);
    assert_eq!(event.ready_since, at(5), "a row that was not due was not late");
    assert_eq!(event.dead, [(ErrorClass::Terminal, 1), (ErrorClass::Decode, 1)].into());
    assert_eq!((event.dead_since, event.is_complete, event.is_read), (at(0), true, None));
    let lag = signals(subject, 20).await.lag();
    assert_eq!(lag, Duration::from_secs(15));
    // Once all are due, and the second lease has ended.
    assert_eq!(counts(&of_orders(subject, 101).await), [3, 0, 0, 0, 0, 2]);
    assert_eq!(of_orders(subject, 4).await.ready_since, None);
    assert_eq!(signals(subject, 4).await.lag(), Duration::ZERO, "nothing is due");
}

pub async fn rows_of_blocked_keys_are_not_late_and_show_as_blocked(subject: &impl Subject) {
    let of = |key: &str| placed(1).with_ordering_key(key);
    let rows = ["dead", "dead", "dead", "later", "later", "fine", "busy", "busy"].map(of);
    subject.append(&rows).await;
    let (token, claimed) = claim_ordered(subject, 4, 0).await;
    mark(subject, token, &claimed[..1], &dead(ErrorClass::Terminal), at(1)).await;
    mark(subject, token, &claimed[1..2], &retry(100), at(1)).await;
    mark(subject, token, &claimed[2..3], &retry(1), at(1)).await;
    subject.append(&[unknown().with_ordering_key("unknown"), unknown().with_ordering_key("unknown")]).await;
    announce(subject, &[]).await;
    let found = signals(subject, 12).await;
    let [nobody, orders] = &found.events[..] else { panic!("{found:?}") };
    assert_eq!((nobody.logical_name(), nobody.unroutable()), ("nobody.knows-this.v7".into(), 2));
    assert_eq!((nobody.is_read, orders.is_read), (Some(false), Some(true)));
    // `fine` is due again since 2, and the second of `busy` only waits its turn.
    assert_eq!((orders.ready, orders.blocked, orders.retrying, orders.claimed), (2, 3, 1, 1));
    assert_eq!(orders.dead_letters(), 1);
    let blocked = &found.blocked;
    assert_eq!((blocked.dead, blocked.backoff, blocked.unroutable, blocked.followers), (1, 1, 1, 4));
    assert!(blocked.since <= at(1), "since the unknown row was stored");
    // Without the row that waits its turn, the age is that of the one which is ready.
    mark(subject, token, &claimed[3..4], &Transition::Dispatched, at(12)).await;
    let (token, next) = claim_ordered(subject, 1, 12).await;
    mark(subject, token, &next, &Transition::Dispatched, at(12)).await;
    assert_eq!(next[0].envelope.message_id, rows[7].message_id);
    assert_eq!(signals(subject, 12).await.lag(), Duration::from_secs(10));
}

pub async fn rows_that_no_relay_reads_are_counted_and_not_late(subject: &impl Subject) {
    subject.append(&[unknown(), unknown()]).await;
    let found = signals(subject, 0).await;
    assert_eq!(found.total(EventSignals::unroutable), 0, "no relay lives, so nobody can tell");
    assert!(found.lag() > Duration::ZERO);
    announce(subject, &[]).await;
    let found = signals(subject, 0).await;
    assert_eq!((found.total(EventSignals::unroutable), found.lag()), (2, Duration::ZERO));
    assert!(found.lag_of(&found.events[0]) > Duration::ZERO, "their age is told with the event");
}

pub async fn a_row_that_was_never_tried_shows_for_as_long_as_it_waits(subject: &impl Subject) {
    let old = placed(1);
    subject.append(&[old.clone(), placed(2)]).await;
    let since = subject.row(&old).await.available_at;
    let year = 365 * 24 * 3_600;
    let event = of_orders(subject, year).await;
    assert_eq!((event.ready, event.ready_since, event.oldest), (2, Some(since), Some(since)));
    // While somebody works on newer rows, too.
    let (token, rows) = claim(subject, 2, at(0)).await;
    mark(subject, token, &rows[..1], &Transition::Release, at(0)).await;
    mark(subject, token, &rows[1..], &Transition::Dispatched, at(0)).await;
    assert_eq!(of_orders(subject, year).await.ready_since, Some(since));
}

pub async fn a_dead_letter_counts_until_it_is_replayed_or_skipped(subject: &impl Subject) {
    subject.append(&placed_many(2)).await;
    let (token, rows) = claim(subject, 2, at(0)).await;
    mark(subject, token, &rows, &dead(ErrorClass::Terminal), at(3)).await;
    assert_eq!(of_orders(subject, 9).await.dead_letters(), 2);
    let replay = Replay { id: rows[0].id, by: "ann", reason: None, all_handlers: false };
    subject.store().replay(&replay).await.unwrap();
    let event = of_orders(subject, 9).await;
    assert_eq!((event.dead_letters(), event.ready), (1, 1), "the replay is on its way");
    let (token, replayed) = claim(subject, 1, at(9)).await;
    mark(subject, token, &replayed, &dead(ErrorClass::Timeout), at(9)).await;
    let event = of_orders(subject, 9).await;
    assert_eq!(event.dead, [(ErrorClass::Terminal, 1), (ErrorClass::Timeout, 1)].into());
    for row in [rows[1].id, replayed[0].id] {
        subject.store().skip(row, "ann", None, at(9)).await.unwrap();
    }
    assert_eq!(signals(subject, 9).await.events, []);
}

pub async fn a_replay_is_late_though_its_key_is_blocked(subject: &impl Subject) {
    let rows = [placed(1).with_ordering_key("k"), placed(2).with_ordering_key("k")];
    subject.append(&rows).await;
    let (token, claimed) = claim_ordered(subject, 1, 0).await;
    mark(subject, token, &claimed, &dead(ErrorClass::Terminal), at(0)).await;
    let replay = Replay { id: claimed[0].id, by: "ann", reason: None, all_handlers: false };
    subject.store().replay(&replay).await.unwrap();
    let event = of_orders(subject, 0).await;
    assert_eq!((event.ready, event.blocked), (1, 1));
    assert!(event.ready_since.is_some());
}

pub async fn a_dead_letter_of_an_event_that_proceeds_blocks_nothing(subject: &impl Subject) {
    let rows = [placed(1).with_ordering_key("k"), placed(2).with_ordering_key("k")];
    subject.append(&rows).await;
    let (token, claimed) = claim_ordered(subject, 1, 0).await;
    mark(subject, token, &claimed, &dead(ErrorClass::Terminal), at(0)).await;
    announce(subject, &[]).await;
    assert_eq!(signals(subject, 0).await.blocked.dead, 1);
    announce(subject, &[OrderPlaced::EVENT_TYPE]).await;
    let found = signals(subject, 0).await;
    assert_eq!((found.blocked.keys(), found.blocked.followers), (0, 0));
    assert_eq!((found.events[0].ready, found.events[0].dead_letters()), (1, 1));
    assert_eq!(subject.store().blocked_keys(9, at(0)).await.unwrap(), []);
}

pub async fn leases_count_by_their_end(subject: &impl Subject) {
    subject.append(&placed_many(1)).await;
    claim(subject, 1, at(0)).await;
    let lease = i64::try_from(LEASE.as_secs()).unwrap();
    let event = of_orders(subject, lease - 1).await;
    assert_eq!((event.claimed, event.expired), (1, 0));
    let event = of_orders(subject, lease).await;
    assert_eq!((event.claimed, event.expired, event.ready_since), (0, 1, None));
}

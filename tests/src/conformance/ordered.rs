//! pending → claimed in the order of each key, and what holds up a key.
#![allow(missing_docs)] // The names say it all.

use super::{at, ids, mark, request, take_over};
use crate::{events::placed, subject::Subject};
use outbox_core::{
    Envelope, ErrorClass, MessageId, OutboxStore, RowId, Status,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::{ClaimedRow, LeaseToken, Progress},
    store::{
        Announcement, Cause, ClaimRequest, OrderedClaim, OrderedRequest, OutboxOperator, Replay, TakeOver,
    },
};
use std::{collections::BTreeSet, time::Duration};

/// Stores one row of each of these keys, in this order.
async fn store(subject: &impl Subject, keys: &[&str]) -> Vec<Envelope> {
    let envelopes: Vec<_> = keys.iter().map(|key| placed(1).with_ordering_key(key)).collect();
    subject.append(&envelopes).await;
    envelopes
}

async fn claim_after(
    subject: &impl Subject,
    limit: u32,
    after: Option<&str>,
    second: i64,
) -> (LeaseToken, OrderedClaim) {
    let claim = request(limit, at(second));
    (claim.token, subject.store().claim_ordered(&OrderedRequest { claim, after }).await.unwrap())
}

async fn claim(subject: &impl Subject, limit: u32, second: i64) -> (LeaseToken, Vec<ClaimedRow>) {
    let (token, found) = claim_after(subject, limit, None, second).await;
    (token, found.claimed.rows)
}

/// The key of a row, without the mark of a key that the caller named.
fn key(row: &ClaimedRow) -> &str {
    row.envelope.ordering_key.as_deref().and_then(|key| key.strip_prefix('=')).unwrap()
}

fn keys(rows: &[ClaimedRow]) -> Vec<&str> {
    rows.iter().map(key).collect()
}

fn later(seconds: u64) -> Transition {
    Transition::Retry { delay: Duration::from_secs(seconds), outcome: AttemptOutcome::default() }
}

fn dead() -> Transition {
    let failed = FailedAttempt { handler: None, class: ErrorClass::Terminal, error: "no".into() };
    Transition::Dead(AttemptOutcome::new(Progress::new(), vec![failed]))
}

async fn id(subject: &impl Subject, envelope: &Envelope) -> RowId {
    subject.row(envelope).await.id
}

pub async fn a_key_is_claimed_from_its_first_row_without_a_gap(subject: &impl Subject) {
    let rows = store(subject, &["a", "b", "a", "a", "b"]).await;
    let (_, claimed) = claim(subject, 10, 0).await;
    assert_eq!(keys(&claimed), ["a", "b", "a", "a", "b"]);
    assert_eq!(claimed[0].id, id(subject, &rows[0]).await);
    assert!(claimed.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert!(claimed.iter().all(|row| (row.attempts, row.claims) == (1, 1)));
    let row = subject.row(&rows[4]).await;
    assert_eq!((row.status, row.attempts, row.claims), (Status::Claimed, 1, 1));
}

pub async fn a_claim_is_spread_over_the_keys_and_never_more_than_asked_for(subject: &impl Subject) {
    store(subject, &["a"; 20]).await;
    store(subject, &["b", "b", "c"]).await;
    let (_, claimed) = claim(subject, 6, 0).await;
    let count = |key: &str| keys(&claimed).into_iter().filter(|found| *found == key).count();
    assert_eq!((count("a"), count("b"), count("c")), (2, 2, 1));
}

pub async fn keys_are_taken_in_turn(subject: &impl Subject) {
    store(subject, &["a", "b", "c", "d", "e"]).await;
    let (_, first) = claim_after(subject, 2, None, 0).await;
    assert_eq!((keys(&first.claimed.rows), first.next.as_deref()), (vec!["a", "b"], Some("=b")));
    let (_, second) = claim_after(subject, 2, first.next.as_deref(), 0).await;
    assert_eq!((keys(&second.claimed.rows), second.next.as_deref()), (vec!["c", "d"], Some("=d")));
    store(subject, &["a1"]).await;
    let (_, last) = claim_after(subject, 2, second.next.as_deref(), 0).await;
    assert_eq!((keys(&last.claimed.rows), last.next), (vec!["e"], None));
}

pub async fn a_row_in_flight_holds_up_its_key_and_no_other(subject: &impl Subject) {
    store(subject, &["a", "a", "b", "b"]).await;
    let (token, first) = claim(subject, 2, 0).await;
    assert_eq!(keys(&first), ["a", "b"]);
    assert_eq!(claim(subject, 10, 1).await.1, []);
    mark(subject, token, &first[..1], &Transition::Dispatched, at(1)).await;
    assert_eq!(keys(&claim(subject, 10, 1).await.1), ["a"]);
}

pub async fn a_row_in_backoff_holds_up_its_key_and_no_other(subject: &impl Subject) {
    let rows = store(subject, &["a", "a", "b"]).await;
    let (token, first) = claim(subject, 3, 0).await;
    mark(subject, token, &first[..1], &later(100), at(0)).await;
    mark(subject, token, &first[1..], &Transition::Release, at(0)).await;
    assert_eq!(keys(&claim(subject, 10, 99).await.1), ["b"]);
    let (_, again) = claim(subject, 10, 100).await;
    assert_eq!(ids(&again), [id(subject, &rows[0]).await, id(subject, &rows[1]).await]);
    assert_eq!((again[0].attempts, again[1].attempts), (2, 1));
}

pub async fn a_row_that_nobody_reads_holds_up_its_key_and_no_other(subject: &impl Subject) {
    let unknown = Envelope::stored(MessageId::new(), "nobody.knows-this".into(), 1, "{}".into());
    let rows = store(subject, &["a"]).await;
    subject.append(&[unknown.clone().with_ordering_key("a")]).await;
    store(subject, &["a", "b"]).await;
    let (token, claimed) = claim(subject, 10, 0).await;
    assert_eq!(keys(&claimed), ["a", "b"]);
    assert_eq!(claimed[0].id, id(subject, &rows[0]).await);
    mark(subject, token, &claimed, &Transition::Dispatched, at(0)).await;
    assert_eq!(claim(subject, 10, 0).await.1, []);
    assert_eq!(subject.row(&unknown).await.attempts, 0);
    subject.store().skip(id(subject, &unknown).await, "ann", None, at(1)).await.unwrap();
    assert_eq!(keys(&claim(subject, 10, 1).await.1), ["a"]);
}

pub async fn a_dead_letter_holds_up_its_key_until_it_is_skipped(subject: &impl Subject) {
    let rows = store(subject, &["a", "a", "b"]).await;
    let (token, first) = claim(subject, 2, 0).await;
    mark(subject, token, &first[..1], &dead(), at(0)).await;
    mark(subject, token, &first[1..], &Transition::Release, at(0)).await;
    assert_eq!(keys(&claim(subject, 10, 9).await.1), ["b"]);
    subject.store().skip(first[0].id, "ann", None, at(9)).await.unwrap();
    assert_eq!(ids(&claim(subject, 10, 9).await.1), [id(subject, &rows[1]).await]);
}

pub async fn a_replay_goes_before_the_rows_that_its_dead_letter_holds_up(subject: &impl Subject) {
    let rows = store(subject, &["a", "a", "a"]).await;
    let (token, first) = claim(subject, 1, 0).await;
    mark(subject, token, &first, &dead(), at(0)).await;
    let replay = Replay { id: first[0].id, by: "ann", reason: None, all_handlers: false };
    let new = subject.store().replay(&replay).await.unwrap();
    let (token, claimed) = claim(subject, 10, 1).await;
    assert_eq!(ids(&claimed), [new]);
    assert_eq!(claim(subject, 10, 1).await.1, [], "the others wait for it");
    mark(subject, token, &claimed, &later(10), at(1)).await;
    assert_eq!(claim(subject, 10, 5).await.1, [], "they wait while it is in backoff");
    let (token, claimed) = claim(subject, 10, 11).await;
    assert_eq!(ids(&claimed), [new]);
    mark(subject, token, &claimed, &Transition::Dispatched, at(11)).await;
    let (_, followers) = claim(subject, 10, 11).await;
    assert_eq!(ids(&followers), [id(subject, &rows[1]).await, id(subject, &rows[2]).await]);
}

pub async fn a_dead_letter_of_an_event_that_proceeds_holds_up_nothing(subject: &impl Subject) {
    store(subject, &["a", "a"]).await;
    let (token, first) = claim(subject, 1, 0).await;
    mark(subject, token, &first, &dead(), at(0)).await;
    assert_eq!(claim(subject, 10, 1).await.1, []);
    let claim = ClaimRequest { proceed: &["orders.order-placed"], ..request(10, at(1)) };
    let found = subject.store().claim_ordered(&OrderedRequest { claim, after: None }).await.unwrap();
    assert_eq!(keys(&found.claimed.rows), ["a"]);
}

pub async fn rows_of_a_vanished_relay_are_taken_over_in_the_order_of_their_key(subject: &impl Subject) {
    let rows = store(subject, &["a", "a", "b"]).await;
    claim(subject, 3, 0).await;
    let (_, found) = claim_after(subject, 9, None, 61).await;
    assert_eq!((found.claimed.rows, found.expired), (vec![], vec!["=a".to_owned(), "=b".to_owned()]));
    let keys = ["=a".to_owned(), "=b".to_owned()];
    let take = async |second| {
        let request = TakeOver { keys: &keys, ..take_over(at(second)) };
        assert!(subject.store().has_expired(&request).await.unwrap());
        (request.claim.token, subject.store().take_over(&request).await.unwrap().row.unwrap())
    };
    let (token, first) = take(61).await;
    assert_eq!((first.id, first.attempts), (id(subject, &rows[0]).await, 2));
    assert!(subject.row(&rows[0]).await.lease.unwrap().isolated);
    // The second waits for the first, and the other key for nobody.
    let (_, other) = take(61).await;
    assert_eq!(other.id, id(subject, &rows[2]).await);
    let nothing = TakeOver { keys: &keys, ..take_over(at(61)) };
    assert_eq!(subject.store().take_over(&nothing).await.unwrap().row, None);
    mark(subject, token, &[first], &Transition::Dispatched, at(62)).await;
    assert_eq!(take(62).await.1.id, id(subject, &rows[1]).await);
}

pub async fn a_row_in_the_middle_that_is_in_flight_ends_the_run(subject: &impl Subject) {
    store(subject, &["a", "a", "a", "a"]).await;
    let (token, rows) = claim(subject, 2, 0).await;
    // The first is given back while the second is still with its owner.
    mark(subject, token, &rows[..1], &Transition::Release, at(0)).await;
    assert_eq!(ids(&claim(subject, 4, 0).await.1), [rows[0].id]);
}

pub async fn what_follows_an_expired_row_that_is_tried_again_waits_for_it(subject: &impl Subject) {
    // The old owner's mark arrives after the lease: the first row is in backoff, the others are still its.
    store(subject, &["a", "a", "a"]).await;
    let (token, rows) = claim(subject, 3, 0).await;
    mark(subject, token, &rows[..1], &later(100), at(61)).await;
    let (_, found) = claim_after(subject, 9, None, 62).await;
    assert_eq!((found.claimed.rows, found.expired), (vec![], vec![]));
    let keys = ["=a".to_owned()];
    let request = TakeOver { keys: &keys, ..take_over(at(62)) };
    assert_eq!(subject.store().take_over(&request).await.unwrap().row, None);
    let (_, again) = claim(subject, 9, 161).await;
    assert_eq!(ids(&again), [rows[0].id], "the others are still claimed, and are taken over in turn");
}

pub async fn ordered_claims_at_the_same_instant_share_no_row_and_leave_no_gap(subject: &impl Subject) {
    let names: Vec<_> = (0..10).map(|n| format!("key-{n}")).collect();
    let keys: Vec<_> = (0..200).map(|n| names[n % 10].as_str()).collect();
    store(subject, &keys).await;
    let mut claims = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let store = subject.store().clone();
        claims.spawn(async move {
            let mut claimed = Vec::new();
            for _ in 0..10 {
                let request = OrderedRequest { claim: request(7, at(0)), after: None };
                claimed.extend(store.claim_ordered(&request).await.unwrap().claimed.rows);
            }
            claimed
        });
    }
    let claimed = claims.join_all().await.concat();
    let distinct: BTreeSet<_> = claimed.iter().map(|row| row.id).collect();
    assert_eq!(distinct.len(), claimed.len());
    // One claim of each key went through, because its rows are in flight from then on.
    let mut rows: Vec<_> = claimed.iter().collect();
    rows.sort_by_key(|row| row.id);
    for name in &names {
        let of_key = rows.iter().filter(|row| key(row) == name);
        let ids: Vec<_> = of_key.map(|row| row.id).collect();
        let first: Vec<_> =
            subject.ids_of_key(&format!("={name}")).await.into_iter().take(ids.len()).collect();
        assert_eq!(ids, first, "{name}");
        assert!(!ids.is_empty(), "{name}");
    }
}

pub async fn keys_that_wait_are_listed_with_their_cause(subject: &impl Subject) {
    let unknown = Envelope::stored(MessageId::new(), "nobody.knows-this".into(), 1, "{}".into());
    let rows = store(subject, &["dead", "dead", "dead", "later", "later", "fine"]).await;
    let (token, claimed) = claim(subject, 3, 0).await;
    assert_eq!(keys(&claimed), ["dead", "later", "fine"]);
    mark(subject, token, &claimed[..1], &dead(), at(7)).await;
    mark(subject, token, &claimed[1..2], &later(100), at(7)).await;
    subject.append(&[unknown.clone().with_ordering_key("unknown")]).await;
    let blocked = async |second| {
        let blocked = subject.store().blocked_keys(9, at(second)).await.unwrap();
        blocked.into_iter().map(|key| (key.key, key.head, key.cause, key.followers)).collect::<Vec<_>>()
    };
    let dead = ("=dead".to_owned(), id(subject, &rows[0]).await, Cause::Dead, 2);
    let until = at(107).unwrap();
    let backoff = ("=later".to_owned(), id(subject, &rows[3]).await, Cause::Backoff { until }, 1);
    let unroutable = ("=unknown".to_owned(), id(subject, &unknown).await, Cause::Unroutable, 0);
    assert_eq!(blocked(8).await, [dead.clone(), backoff.clone()], "nobody tells what is read");
    let handlers = [("orders.order-placed.v1".to_owned(), BTreeSet::new())].into();
    let lasts = Duration::from_hours(1);
    let announcement = Announcement { relay: "one", handlers: &handlers, proceed: &[], lasts, now: at(0) };
    subject.store().announce(&announcement).await.unwrap();
    assert_eq!(blocked(8).await, [dead.clone(), backoff, unroutable.clone()]);
    assert_eq!(blocked(107).await, [dead, unroutable.clone()]);
    let since = subject.store().blocked_keys(1, at(8)).await.unwrap()[0].since;
    assert_eq!(Some(since), at(7), "a dead row has blocked since it died");
    subject.store().skip(claimed[0].id, "ann", None, at(9)).await.unwrap();
    assert_eq!(blocked(107).await, [unroutable]);
}

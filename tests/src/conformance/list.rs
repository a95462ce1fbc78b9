//! Looking at rows: every filter finds what it says, a page at a time, and nothing is changed or hidden.
#![allow(missing_docs)] // The names say it all.

use super::{LEASE, at, claim, mark};
use crate::{
    events::{placed, placed_many},
    subject::Subject,
};
use outbox_core::{
    Envelope, ErrorClass, MessageId, RowId, Status,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::Progress,
    store::{ListFilter, ListRequest, OperateError, OutboxOperator, Replay, ReplayPlan, Standing},
};
use std::time::Duration;

fn failed(class: ErrorClass) -> AttemptOutcome {
    let failed = FailedAttempt { handler: Some("a.b".into()), class, error: "no".into() };
    AttemptOutcome::new(Progress::new(), vec![failed])
}

/// A condition on its own.
type Set = fn(&mut ListFilter);

fn filter(set: impl FnOnce(&mut ListFilter)) -> ListFilter {
    let mut filter = ListFilter::default();
    set(&mut filter);
    filter
}

async fn found(subject: &impl Subject, filter: &ListFilter) -> Vec<RowId> {
    let page = subject.store().list(&ListRequest::of(filter)).await.unwrap();
    assert_eq!(page.unreadable, []);
    page.rows.iter().map(|row| row.id).collect()
}

/// Stores a message and makes it a dead letter.
async fn dead(subject: &impl Subject, class: ErrorClass) -> RowId {
    let id = subject.append(&[placed(1)]).await[0];
    let (token, rows) = claim(subject, 1, at(0)).await;
    assert_eq!(rows[0].id, id);
    mark(subject, token, &rows, &Transition::Dead(failed(class)), at(0)).await;
    id
}

/// Claims the only row that is due and marks it.
async fn finish(subject: &impl Subject, transition: &Transition) -> RowId {
    let (token, rows) = claim(subject, 1, at(0)).await;
    mark(subject, token, &rows, transition, at(0)).await;
    rows[0].id
}

fn replay(id: RowId) -> Replay<'static> {
    Replay { id, by: "ann", reason: Some("mended"), all_handlers: false }
}

pub async fn every_standing_finds_its_rows_and_no_others(subject: &impl Subject) {
    let resolved = dead(subject, ErrorClass::Terminal).await;
    subject.store().replay(&replay(resolved)).await.unwrap();
    let dispatched = finish(subject, &Transition::Dispatched).await;
    let replayed = dead(subject, ErrorClass::Timeout).await;
    let pending = subject.store().replay(&replay(replayed)).await.unwrap();
    let later = Transition::Retry { delay: Duration::from_hours(9), outcome: failed(ErrorClass::Transient) };
    assert_eq!(finish(subject, &later).await, pending);
    let waiting = dead(subject, ErrorClass::Panic).await;
    let claimed = subject.append(&[placed(2)]).await[0];
    claim(subject, 1, at(0)).await;

    let all = vec![resolved, dispatched, replayed, pending, waiting, claimed];
    for (standing, expected) in [
        (Standing::Any, all.clone()),
        (Standing::Live, vec![pending, claimed]),
        (Standing::Status(Status::Pending), vec![pending]),
        (Standing::Status(Status::Claimed), vec![claimed]),
        (Standing::Status(Status::Dispatched), vec![dispatched]),
        (Standing::Status(Status::Dead), vec![resolved, replayed, waiting]),
        (Standing::Unresolved, vec![replayed, waiting]),
        (Standing::Replayable, vec![waiting]),
    ] {
        let of = filter(|filter| filter.standing = standing);
        assert_eq!(found(subject, &of).await, expected, "{standing:?}");
        // Together with other conditions it still means the same.
        let of = filter(|filter| (filter.standing, filter.event_version) = (standing, Some(1)));
        assert_eq!(found(subject, &of).await, expected, "{standing:?} of version 1");
        let both = filter(|filter| {
            (filter.standing, filter.claimed_by) = (standing, Some("relay-1".into()));
        });
        let expected: Vec<_> = expected.into_iter().filter(|id| *id == claimed).collect();
        assert_eq!(found(subject, &both).await, expected, "{standing:?} of a relay");
    }
    let failed = filter(|filter| filter.failed = true);
    assert_eq!(found(subject, &failed).await, [resolved, replayed, pending, waiting]);
    let panicked = filter(|filter| filter.class = Some(ErrorClass::Panic));
    assert_eq!(found(subject, &panicked).await, [waiting]);
    let transient = filter(|filter| filter.class = Some(ErrorClass::Transient));
    assert_eq!(found(subject, &transient).await, [pending]);
    let terminal = filter(|filter| filter.class = Some(ErrorClass::Terminal));
    assert_eq!(found(subject, &terminal).await, [resolved]);
}

pub async fn every_condition_narrows_what_is_found(subject: &impl Subject) {
    let mut one = placed(1).with_ordering_key("k-1");
    one.aggregate_type = Some("order".into());
    one.aggregate_id = Some("7".into());
    one.correlation_id = Some("talk".into());
    let two = placed(2);
    let other = Envelope::stored(MessageId::new(), "nobody.knows-this".into(), 7, "{}".into());
    let ids = subject.append(&[one.clone(), two.clone(), other]).await;
    let at_hours = |hours: u64| Duration::from_hours(hours);
    let cases: [(Set, &[usize]); 10] = [
        (|filter| filter.event_type = Some("orders.order-placed".into()), &[0, 1]),
        (|filter| filter.event_type = Some("orders.order".into()), &[]),
        (|filter| filter.event_version = Some(7), &[2]),
        (|filter| filter.ordering_key = Some("k-1".into()), &[]),
        (|filter| filter.aggregate_type = Some("order".into()), &[0]),
        (|filter| filter.aggregate_id = Some("7".into()), &[0]),
        (|filter| filter.aggregate_id = Some("8".into()), &[]),
        (|filter| filter.correlation_id = Some("talk".into()), &[0]),
        (|filter| filter.claimed_by = Some("relay-1".into()), &[]),
        (|filter| filter.class = Some(ErrorClass::Timeout), &[]),
    ];
    for (n, (set, expected)) in cases.into_iter().enumerate() {
        let expected: Vec<_> = expected.iter().map(|place| ids[*place]).collect();
        assert_eq!(found(subject, &filter(set)).await, expected, "case {n}");
    }
    let keyed = filter(|filter| filter.ordering_key.clone_from(&one.ordering_key));
    assert_eq!(found(subject, &keyed).await, [ids[0]], "a key as it is stored");
    let message = filter(|filter| filter.message_id = Some(two.message_id));
    assert_eq!(found(subject, &message).await, [ids[1]]);
    let both = filter(|filter| {
        (filter.message_id, filter.event_version) = (Some(two.message_id), Some(7));
    });
    assert_eq!(found(subject, &both).await, [], "conditions add up");
    // The rows were stored before the pinned clock of 2040, and long after 1990.
    let young = filter(|filter| filter.newer_than = Some(at_hours(1)));
    let old = filter(|filter| filter.older_than = Some(at_hours(1)));
    for (of, expected) in [(&young, 0), (&old, 3)] {
        let request = ListRequest { now: at(0), ..ListRequest::of(of) };
        assert_eq!(subject.store().list(&request).await.unwrap().rows.len(), expected);
    }
    assert_eq!(found(subject, &young).await, ids);
    assert_eq!(found(subject, &old).await, []);
    let ancient = filter(|filter| filter.older_than = Some(Duration::MAX));
    assert_eq!(found(subject, &ancient).await, [], "an age beyond all times finds nothing");
}

pub async fn pages_go_on_where_the_last_one_ended(subject: &impl Subject) {
    let ids = subject.append(&placed_many(7)).await;
    let (all, live) = (ListFilter::default(), filter(|filter| filter.standing = Standing::Live));
    for (of, newest_first) in [(&all, false), (&all, true), (&live, false), (&live, true)] {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let request = ListRequest { newest_first, after, limit: 3, ..ListRequest::of(of) };
            let page = subject.store().list(&request).await.unwrap();
            assert!(page.rows.len() <= 3);
            seen.extend(page.rows.iter().map(|row| row.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let mut expected = ids.clone();
        if newest_first {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
    let none = ListRequest { limit: 0, ..ListRequest::of(&all) };
    assert_eq!(subject.store().list(&none).await.unwrap().rows, []);
    let many = ListRequest { limit: u32::MAX, ..ListRequest::of(&all) };
    assert_eq!(subject.store().list(&many).await.unwrap().rows.len(), 7);
}

pub async fn contents_are_told_only_when_they_are_asked_for(subject: &impl Subject) {
    let envelope = placed(1).with_header("tenant", "acme");
    let id = subject.append(std::slice::from_ref(&envelope)).await[0];
    let all = ListFilter::default();
    let page = subject.store().list(&ListRequest::of(&all)).await.unwrap();
    assert_eq!(page.rows[0].contents, None);
    assert_eq!(subject.store().show(id, false).await.unwrap().row, page.rows[0]);
    let page = subject.store().list(&ListRequest { contents: true, ..ListRequest::of(&all) }).await.unwrap();
    let contents = page.rows[0].contents.clone().unwrap();
    assert_eq!((contents.payload, contents.headers), (envelope.payload, r#"{"tenant":"acme"}"#.to_owned()));
    assert_eq!(subject.store().show(id, true).await.unwrap().row, page.rows[0]);
    assert!(!format!("{page:?}").contains("acme"), "{page:?}");
}

pub async fn a_row_is_shown_with_its_attempts_and_its_replays(subject: &impl Subject) {
    let first = dead(subject, ErrorClass::Terminal).await;
    let second = subject.store().replay(&replay(first)).await.unwrap();
    finish(subject, &Transition::Dead(failed(ErrorClass::Timeout))).await;
    let third = subject.store().replay(&replay(second)).await.unwrap();
    claim(subject, 1, at(0)).await;
    for id in [first, second, third] {
        let shown = subject.store().show(id, false).await.unwrap();
        assert_eq!((shown.row.id, shown.chain), (id, vec![first, second, third]));
    }
    let shown = subject.store().show(second, false).await.unwrap();
    let row = &shown.row;
    assert_eq!((row.known_status(), row.attempts, row.claims), (Some(Status::Dead), 1, 1));
    assert_eq!((row.replay_of, row.replayed_as), (Some(first), Some(third)));
    assert_eq!((row.operated_by.as_deref(), row.reason.as_deref()), (Some("ann"), Some("mended")));
    assert_eq!((row.error_class.as_deref(), row.last_error.as_deref()), (Some("timeout"), Some("no")));
    assert_eq!((row.finished_at, row.resolved_at, row.claimed_by.as_deref()), (at(0), None, None));
    let [attempt] = &shown.attempts[..] else { panic!("{:?}", shown.attempts) };
    assert_eq!((attempt.attempt, &*attempt.relay, &*attempt.class), (1, "relay-1", "timeout"));
    assert_eq!((attempt.handler.as_deref(), &*attempt.error), (Some("a.b"), "no"));
    assert_eq!(Some(attempt.failed_at), at(0));
    let live = subject.store().show(third, false).await.unwrap().row;
    assert_eq!((live.claimed_by.as_deref(), live.finished_at), (Some("relay-1"), None));
    assert_eq!(live.lease_expires_at, at(i64::try_from(LEASE.as_secs()).unwrap()));
    let nothing = subject.store().show(RowId(i64::MAX), false).await;
    assert!(matches!(nothing, Err(OperateError::NotFound(RowId(i64::MAX)))), "{nothing:?}");
}

pub async fn only_what_a_plan_has_shown_is_replayed_and_each_row_is_guarded(subject: &impl Subject) {
    let mut ids = Vec::new();
    for class in [ErrorClass::Timeout, ErrorClass::Terminal, ErrorClass::Timeout, ErrorClass::Timeout] {
        ids.push(dead(subject, class).await);
    }
    let store = subject.store();
    // What a filter says of standing is not looked at: nothing but a dead letter can be replayed.
    let timeouts = filter(|filter| {
        (filter.class, filter.standing) = (Some(ErrorClass::Timeout), Standing::Live);
    });
    let plan = ReplayPlan::of(store, &timeouts, 2, None).await.unwrap();
    assert_eq!((plan.rows().len(), plan.is_complete()), (2, false));
    let plan = ReplayPlan::of(store, &timeouts, 3, None).await.unwrap();
    let planned: Vec<_> = plan.rows().iter().map(|row| row.id).collect();
    assert_eq!((&planned, plan.is_complete()), (&vec![ids[0], ids[2], ids[3]], true));
    assert_eq!(claim(subject, 9, at(1)).await.1, [], "a plan changes nothing");

    store.skip(ids[2], "bob", None, at(1)).await.unwrap();
    let late = dead(subject, ErrorClass::Timeout).await;
    let refused = plan.clone().carry_out(store, "", None, false).await;
    assert!(matches!(refused, Err(OperateError::Text { .. })), "{refused:?}");
    let done = plan.carry_out(store, "ann", Some("mended"), false).await.unwrap();
    assert_eq!(done.iter().map(|done| done.dead).collect::<Vec<_>>(), planned);
    assert!(matches!(done[1].replayed, Err(OperateError::State { .. })), "{done:?}");
    let replays: Vec<_> = claim(subject, 9, at(2)).await.1.iter().map(|row| row.replay_of).collect();
    assert_eq!(replays, [Some(ids[0]), Some(ids[3])]);
    let next = ReplayPlan::of(store, &timeouts, 9, None).await.unwrap();
    assert_eq!(next.rows().iter().map(|row| row.id).collect::<Vec<_>>(), [late]);
}

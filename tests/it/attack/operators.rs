use outbox_core::{
    ErrorClass, MessageId, OutboxEvent, OutboxStore, RowId,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::Progress,
    store::{
        Finished, ListFilter, ListRequest, OperateError, OutboxOperator, Pause, Purge, Replay, Standing,
    },
};
use outbox_seaorm::{
    Inbox, InboxPurge, SeaOrmStore,
    doctor::{DoctorOptions, examine},
};
use outbox_tests::{
    conformance::{at, claim, mark},
    database::TestDatabase,
    events::{OrderPlaced, placed, placed_many},
    for_each_database,
    subject::{Memory, Sql, Subject},
};
use std::{collections::BTreeSet, time::Duration};

for_each_database! {
    spans_of_any_length_purge_and_find_nothing_that_is_younger,
    the_doctor_bears_spans_of_any_length,
    names_that_nothing_can_have_are_refused_and_find_nothing,
    ids_that_no_row_has_are_told_as_such,
    a_difference_between_two_relays_is_told_however_many_relays_differ,
    what_only_a_paused_handler_would_handle_is_not_late,
}

const AGES: [Duration; 4] = [
    Duration::from_hours(24 * 36_500),
    Duration::from_hours(24 * 365 * 10_000),
    Duration::from_hours(200_000_000 * 24),
    Duration::MAX,
];

async fn spans_of_any_length_purge_and_find_nothing_that_is_younger(database: &TestDatabase) {
    spans(&Sql::new(database)).await;
    for older_than in AGES {
        let purge = InboxPurge { older_than, limit: 10, now: None };
        assert_eq!(Inbox::default().purge(&database.db, &purge).await.unwrap(), 0, "{older_than:?}");
        for finished in [Finished::Dispatched, Finished::Resolved, Finished::History] {
            let purge = Purge { finished, older_than, limit: 10, now: None };
            let store = SeaOrmStore::new(database.db.clone());
            assert_eq!(store.purgeable(&purge).await.unwrap(), 0, "{finished:?} older than {older_than:?}");
        }
    }
}

#[tokio::test]
async fn spans_of_any_length_purge_nothing_that_is_younger_in_memory() {
    spans(&Memory::default()).await;
}

async fn spans(subject: &impl Subject) {
    subject.append(&placed_many(3)).await;
    let (token, rows) = claim(subject, 2, at(0)).await;
    mark(subject, token, &rows[..1], &Transition::Dispatched, at(0)).await;
    mark(subject, token, &rows[1..], &dead(), at(0)).await;
    subject.store().skip(rows[1].id, "ann", None, at(0)).await.unwrap();
    for older_than in AGES {
        for finished in [Finished::Dispatched, Finished::Resolved, Finished::History] {
            for now in [None, at(10)] {
                let purge = Purge { finished, older_than, limit: 10, now };
                let purged = subject.store().purge(&purge).await;
                assert_eq!(purged.unwrap().rows, 0, "{finished:?} older than {older_than:?}");
            }
        }
        let found = async |filter: ListFilter| {
            let request = ListRequest::of(&filter);
            subject.store().list(&request).await.unwrap().rows.len()
        };
        let (mut older, mut newer) = (ListFilter::default(), ListFilter::default());
        older.older_than = Some(older_than);
        newer.newer_than = Some(older_than);
        assert_eq!((found(older).await, found(newer).await), (0, 3), "{older_than:?}");
    }
}

fn dead() -> Transition {
    let failed = FailedAttempt { handler: None, class: ErrorClass::Terminal, error: "no".into() };
    Transition::Dead(AttemptOutcome::new(Progress::new(), vec![failed]))
}

async fn the_doctor_bears_spans_of_any_length(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(2)).await;
    claim(&subject, 1, None).await;
    for age in [Duration::ZERO, AGES[0], AGES[1], AGES[2], AGES[3]] {
        let mut options = DoctorOptions::default();
        (options.late, options.retention, options.long_transaction) = (age, age, age);
        (options.orphaned, options.clock_skew) = (age, age.max(Duration::from_hours(1)));
        let diagnosis = examine(subject.store(), &options).await.unwrap();
        assert_eq!(diagnosis.unasked, [], "{age:?}");
    }
}

const ODD: [&str; 6] = ["", "\0", "a\0b", "orders.order-placed.v1", "x y'\";--", "é"];

async fn names_that_nothing_can_have_are_refused_and_find_nothing(database: &TestDatabase) {
    odd_names(&Sql::new(database)).await;
}

#[tokio::test]
async fn names_that_nothing_can_have_are_refused_and_find_nothing_in_memory() {
    odd_names(&Memory::default()).await;
}

async fn odd_names(subject: &impl Subject) {
    subject.append(&placed_many(1)).await;
    let store = subject.store();
    let long = "é".repeat(3_000);
    for name in ODD.into_iter().chain([&*long]) {
        let what: String = name.chars().take(30).collect();
        let texts: [fn(&mut ListFilter, String); 6] = [
            |filter, text| filter.event_type = Some(text),
            |filter, text| filter.ordering_key = Some(text),
            |filter, text| filter.aggregate_type = Some(text),
            |filter, text| filter.aggregate_id = Some(text),
            |filter, text| filter.correlation_id = Some(text),
            |filter, text| (filter.claimed_by, filter.standing) = (Some(text), Standing::Live),
        ];
        for (n, set) in texts.iter().enumerate() {
            let mut filter = ListFilter::default();
            set(&mut filter, name.to_owned());
            let request = ListRequest::of(&filter);
            let page = store.list(&request).await;
            assert!(page.as_ref().is_ok_and(|page| page.rows.is_empty()), "list {n} {what:?}: {page:?}");
        }
        for pause in [Pause::Event(name.to_owned()), Pause::Handler(name.to_owned())] {
            let paused = store.pause(&pause, "ann", None).await;
            let resumed = store.resume(&pause).await;
            let is_typed =
                matches!(&paused, Ok(()) | Err(OperateError::Text { .. } | OperateError::Version { .. }));
            assert!(is_typed, "pause {what:?}: {paused:?}");
            assert!(
                resumed.as_ref().is_ok_and(|was| *was == paused.is_ok()),
                "resume {what:?}: {paused:?} {resumed:?}"
            );
        }
        let event = Pause::Event(name.to_owned());
        let paused = store.pause(&event, "ann", None).await;
        assert_eq!(
            paused.is_ok(),
            ["x y'\";--", "é"].contains(&name),
            "a pause that pauses nothing: {what:?} {paused:?}"
        );
        let _ = store.resume(&event).await;
    }
}

async fn ids_that_no_row_has_are_told_as_such(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&[placed(1)]).await;
    let store = subject.store();
    for id in [i64::MIN, -1, 0, i64::MAX].map(RowId) {
        let replay = Replay { id, by: "ann", reason: None, all_handlers: false };
        let said = [
            store.replay(&replay).await.map(drop),
            store.skip(id, "ann", None, None).await,
            store.retry_now(id, None).await,
            store.release(id, None).await,
            store.show(id, true).await.map(drop),
        ];
        assert!(
            said.iter().all(|said| matches!(said, Err(OperateError::NotFound(not)) if *not == id)),
            "{said:?}"
        );
    }
    assert!(store.find(MessageId::new()).await.unwrap().is_none());
}

async fn a_difference_between_two_relays_is_told_however_many_relays_differ(database: &TestDatabase) {
    use outbox_core::store::Announcement;
    let store = SeaOrmStore::new(database.db.clone());
    // Two builds, eight relays of each, in the middle of a deployment that stopped.
    for n in 0..16 {
        let (relay, is_new) = (format!("relay-{n:02}"), n % 2 == 0);
        let ids = |new: &[&str]| -> BTreeSet<String> {
            let all = if is_new { new } else { &["a.b"] };
            all.iter().map(|id| (*id).to_owned()).collect()
        };
        let handlers = [
            (OrderPlaced::LOGICAL_NAME.to_owned(), ids(&["a.b", "a.c"])),
            ("orders.order-shipped.v1".to_owned(), ids(&["a.d"])),
            ("orders.customer-moved.v1".to_owned(), ids(&["a.b"])),
        ]
        .into();
        let proceed: &[&str] = if is_new { &["orders.customer-moved"] } else { &[] };
        let announcement = Announcement {
            relay: &relay,
            handlers: &handlers,
            proceed,
            lasts: Duration::from_hours(1),
            now: None,
        };
        store.announce(&announcement).await.unwrap();
    }
    let diagnosis = examine(&store, &DoctorOptions::default()).await.unwrap();
    for (code, event) in [
        ("handlers-differ", "orders.order-placed.v1"),
        ("handlers-differ", "orders.order-shipped.v1"),
        ("on-dead-differs", "orders.customer-moved.v1"),
    ] {
        let found: Vec<_> =
            diagnosis.findings.iter().filter(|f| f.code == code && f.what.contains(event)).collect();
        assert_eq!(found.len(), 1, "{code} {event}: {found:#?}");
    }
}

async fn what_only_a_paused_handler_would_handle_is_not_late(database: &TestDatabase) {
    use outbox_core::store::Announcement;
    let subject = Sql::new(database);
    let mut options = DoctorOptions::default();
    options.clock_skew = Duration::from_hours(24 * 365 * 50);
    options.now = at(301);
    let announce = async |ids: &[&str]| {
        let ids: BTreeSet<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        let handlers = [(OrderPlaced::LOGICAL_NAME.to_owned(), ids)].into();
        let lasts = Duration::from_hours(24);
        let announcement =
            Announcement { relay: "one", handlers: &handlers, proceed: &[], lasts, now: at(0) };
        subject.store().announce(&announcement).await.unwrap();
    };
    announce(&["mail.confirm"]).await;
    subject.append(&placed_many(2)).await;
    subject.store().pause(&Pause::Handler("mail.confirm".into()), "ann", None).await.unwrap();
    let codes = async || -> Vec<_> {
        let found = examine(subject.store(), &options).await.unwrap().findings;
        found.iter().map(|finding| finding.code).collect()
    };
    assert_eq!(codes().await, ["paused"], "its rows wait because somebody wants it");
    announce(&["mail.confirm", "search.index"]).await;
    assert_eq!(codes().await, ["paused", "late"], "the other handler is not paused");
}

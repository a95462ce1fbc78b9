use super::{announce, codes, look, of_code, only, pinned};
use outbox_core::OutboxEvent;
use outbox_core::{
    Envelope, ErrorClass, MessageId, RowId,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::Progress,
    store::{OrderedRequest, OutboxOperator, OutboxStore, Pause, Replay},
};
use outbox_seaorm::doctor::{DoctorOptions, Severity};
use outbox_tests::{
    conformance::{at, claim, mark, request},
    database::TestDatabase,
    events::{OrderPlaced, placed, placed_many},
    for_each_database,
    subject::{Sql, Subject},
};

for_each_database! {
    rows_that_wait_without_a_relay_are_found,
    rows_that_are_late_while_relays_live_are_found,
    an_event_that_no_live_relay_reads_is_found_with_its_rows,
    relays_with_different_handlers_for_one_event_are_found,
    dead_letters_are_found_by_event_and_cause_until_somebody_acts,
    a_key_behind_a_dead_letter_is_found_until_it_is_skipped,
    a_lease_that_nobody_takes_over_is_found_and_the_command_mends_it,
    a_pause_is_found_with_who_and_since_when,
}

fn dead(class: ErrorClass) -> Transition {
    let failed = FailedAttempt { handler: None, class, error: "no".into() };
    Transition::Dead(AttemptOutcome::new(Progress::new(), vec![failed]))
}

async fn dead_letter(subject: &Sql, class: ErrorClass) -> RowId {
    let id = subject.append(&[placed(1)]).await[0];
    let (token, rows) = claim(subject, 1, at(0)).await;
    mark(subject, token, &rows, &dead(class), at(0)).await;
    id
}

async fn rows_that_wait_without_a_relay_are_found(database: &TestDatabase) {
    let subject = Sql::new(database);
    assert_eq!(look(database, &pinned(0)).await.findings, [], "nothing waits");
    subject.append(&placed_many(2)).await;
    let diagnosis = look(database, &pinned(0)).await;
    let finding = only(&diagnosis, "no-relay");
    assert_eq!(
        (finding.severity, &*finding.what),
        (Severity::Error, "2 rows wait to be delivered, and no relay lives")
    );
    announce(database, "one", &["a.b"], &[]).await;
    assert_eq!(look(database, &pinned(0)).await.findings, []);
    // It was announced for a year.
    assert_eq!(codes(&look(database, &pinned(2 * 365 * 86_400)).await), ["no-relay"]);
}

async fn rows_that_are_late_while_relays_live_are_found(database: &TestDatabase) {
    let subject = Sql::new(database);
    announce(database, "one", &["a.b"], &[]).await;
    subject.append(&placed_many(2)).await;
    let later = Transition::Retry { delay: std::time::Duration::ZERO, outcome: AttemptOutcome::default() };
    let (token, rows) = claim(&subject, 2, at(0)).await;
    mark(&subject, token, &rows, &later, at(0)).await;
    let minutes = |second| {
        let mut options = pinned(second);
        options.late = DoctorOptions::default().late;
        options
    };
    assert_eq!(
        look(database, &minutes(300)).await.findings,
        [],
        "five minutes are no more than five minutes"
    );
    let diagnosis = look(database, &minutes(301)).await;
    let finding = only(&diagnosis, "late");
    assert_eq!(
        finding.what,
        "2 rows of orders.order-placed.v1 are due since 2040-01-01 00:00:00 UTC, while 1 relay lives"
    );
    subject.store().pause(&Pause::Event(OrderPlaced::EVENT_TYPE.into()), "ann", None).await.unwrap();
    assert_eq!(codes(&look(database, &minutes(301)).await), ["paused"], "what is paused is not late");
}

async fn an_event_that_no_live_relay_reads_is_found_with_its_rows(database: &TestDatabase) {
    let subject = Sql::new(database);
    announce(database, "one", &["a.b"], &[]).await;
    let next = Envelope::stored(MessageId::new(), OrderPlaced::EVENT_TYPE.into(), 2, "{}".into());
    subject.append(&[next]).await;
    let diagnosis = look(database, &pinned(1_000)).await;
    let finding = only(&diagnosis, "event-unroutable");
    assert_eq!(finding.what, "1 row waits of orders.order-placed.v2, which no live relay reads");
    assert!(finding.mend.ends_with("`outbox list --live --event orders.order-placed.v2`"), "{finding:?}");
    assert_eq!(database.count("outbox WHERE attempts > 0").await, 0);
}

async fn relays_with_different_handlers_for_one_event_are_found(database: &TestDatabase) {
    announce(database, "one", &["a.b"], &[]).await;
    announce(database, "two", &["a.b", "a.c"], &[]).await;
    let diagnosis = look(database, &pinned(0)).await;
    let finding = only(&diagnosis, "handlers-differ");
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(
        finding.what,
        "relay one handles orders.order-placed.v1 with [a.b], relay two with [a.b, a.c]"
    );
    announce(database, "two", &["a.b"], &[OrderPlaced::EVENT_TYPE]).await;
    let diagnosis = look(database, &pinned(0)).await;
    assert_eq!(
        only(&diagnosis, "on-dead-differs").what,
        "orders.order-placed.v1 has `on_dead = proceed` in relay two and not in relay one"
    );
    announce(database, "two", &["a.b"], &[]).await;
    assert_eq!(look(database, &pinned(0)).await.findings, []);
}

async fn dead_letters_are_found_by_event_and_cause_until_somebody_acts(database: &TestDatabase) {
    let subject = Sql::new(database);
    announce(database, "one", &["a.b"], &[]).await;
    let first = dead_letter(&subject, ErrorClass::Timeout).await;
    let second = dead_letter(&subject, ErrorClass::Terminal).await;
    dead_letter(&subject, ErrorClass::Terminal).await;
    let diagnosis = look(database, &pinned(0)).await;
    assert_eq!(codes(&diagnosis), ["dead-letters", "dead-letters"]);
    let said: Vec<_> = diagnosis.findings.iter().map(|finding| &*finding.what).collect();
    assert!(
        said.iter().any(|said| said.starts_with("2 dead letters of orders.order-placed.v1, class terminal"))
    );
    assert!(
        said.iter().any(|said| said.starts_with("1 dead letter of orders.order-placed.v1, class timeout"))
    );
    assert!(
        diagnosis.findings.iter().any(|finding| finding
            .mend
            .contains("outbox replay --event orders.order-placed.v1 --class timeout")),
        "{diagnosis:?}"
    );
    let replay = Replay { id: first, by: "ann", reason: None, all_handlers: false };
    subject.store().replay(&replay).await.unwrap();
    subject.store().skip(second, "ann", None, at(0)).await.unwrap();
    let diagnosis = look(database, &pinned(0)).await;
    assert!(only(&diagnosis, "dead-letters").what.starts_with("1 dead letter "), "{diagnosis:?}");
}

async fn a_key_behind_a_dead_letter_is_found_until_it_is_skipped(database: &TestDatabase) {
    let subject = Sql::new(database);
    announce(database, "one", &["a.b"], &[]).await;
    let rows = [placed(1).with_ordering_key("k"), placed(2).with_ordering_key("k")];
    let ids = subject.append(&rows).await;
    let claim = request(1, at(0));
    let found = subject.store().claim_ordered(&OrderedRequest { claim, after: None }).await.unwrap();
    mark(&subject, claim.token, &found.claimed.rows, &dead(ErrorClass::Terminal), at(0)).await;
    let diagnosis = look(database, &pinned(10)).await;
    assert_eq!(codes(&diagnosis), ["key-blocked", "dead-letters"], "errors come first");
    let finding = of_code(&diagnosis, "key-blocked")[0];
    assert!(finding.what.contains(&format!("row {} ", ids[0])), "{finding:?}");
    assert!(
        finding.what.contains("is dead since 2040-01-01 00:00:00 UTC; 1 row waits behind it"),
        "{finding:?}"
    );
    assert!(finding.mend.contains(&format!("outbox skip {} ", ids[0])), "{finding:?}");
    subject.store().skip(ids[0], "ann", None, at(10)).await.unwrap();
    assert_eq!(look(database, &pinned(10)).await.findings, []);
}

async fn a_lease_that_nobody_takes_over_is_found_and_the_command_mends_it(database: &TestDatabase) {
    let subject = Sql::new(database);
    announce(database, "one", &["a.b"], &[]).await;
    let ids = subject.append(&placed_many(2)).await;
    claim(&subject, 2, at(0)).await;
    assert_eq!(
        look(database, &pinned(119)).await.findings,
        [],
        "a lease of one minute, and one to take over"
    );
    let diagnosis = look(database, &pinned(120)).await;
    let finding = only(&diagnosis, "orphan-leases");
    assert_eq!(
        finding.what,
        "2 rows of orders.order-placed.v1 with a lease that has expired; the first was left by relay relay-1 at 2040-01-01 00:01:00 UTC"
    );
    assert!(finding.mend.ends_with(&format!("`outbox release {} {}`", ids[0], ids[1])), "{finding:?}");
    for id in ids {
        subject.store().release(id, at(120)).await.unwrap();
    }
    assert_eq!(look(database, &pinned(120)).await.findings, []);
}

async fn a_pause_is_found_with_who_and_since_when(database: &TestDatabase) {
    let store = Sql::new(database).store().clone();
    for (pause, flag) in [
        (Pause::All, "--all"),
        (Pause::Event("a.b".into()), "--event a.b"),
        (Pause::Handler("c.d".into()), "--handler c.d"),
    ] {
        store.pause(&pause, "ann", Some("the shop is shut")).await.unwrap();
        let diagnosis = look(database, &pinned(0)).await;
        let finding = only(&diagnosis, "paused");
        assert!(finding.what.starts_with(&format!("{pause} is paused since 20")), "{finding:?}");
        assert!(finding.what.ends_with("by ann: the shop is shut"), "{finding:?}");
        assert_eq!(finding.mend, format!("outbox resume {flag}"));
        store.resume(&pause).await.unwrap();
    }
}

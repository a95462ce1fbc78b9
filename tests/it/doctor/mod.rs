mod delivery;
mod server;
mod tables;

use outbox_core::{OutboxStore, decide::Transition, store::Announcement};
use outbox_seaorm::{
    SeaOrmStore,
    doctor::{Diagnosis, DoctorOptions, Finding, examine},
};
use outbox_tests::{
    conformance::{at, claim, mark},
    database::TestDatabase,
    events::{placed, placed_many},
    for_each_database,
    subject::{Sql, Subject},
};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use std::{collections::BTreeSet, time::Duration};

for_each_database! {
    a_healthy_outbox_has_no_finding_and_it_is_said_what_was_checked,
}

/// Pinned to so many seconds of the suite's clock, which is years ahead of the real one.
fn pinned(second: i64) -> DoctorOptions {
    let mut options = DoctorOptions::default();
    options.now = at(second);
    options.clock_skew = Duration::from_hours(24 * 365 * 50);
    // Rows are stored by the real clock.
    options.late = options.clock_skew;
    options
}

async fn look(database: &TestDatabase, options: &DoctorOptions) -> Diagnosis {
    examine(&SeaOrmStore::new(database.db.clone()), options).await.unwrap()
}

fn codes(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.findings.iter().map(|finding| finding.code).collect()
}

/// The findings under one code.
fn of_code<'a>(diagnosis: &'a Diagnosis, code: &str) -> Vec<&'a Finding> {
    diagnosis.findings.iter().filter(|finding| finding.code == code).collect()
}

/// The only finding.
#[track_caller]
fn only<'a>(diagnosis: &'a Diagnosis, code: &str) -> &'a Finding {
    let [finding] = &diagnosis.findings[..] else { panic!("{diagnosis:#?}") };
    assert_eq!(finding.code, code, "{diagnosis:#?}");
    assert!(!finding.what.is_empty() && !finding.why.is_empty() && !finding.mend.is_empty(), "{finding:?}");
    finding
}

async fn execute(db: &DatabaseConnection, sql: &str) {
    db.execute_unprepared(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A relay that reads placed orders with these handlers, alive for a year of the suite's clock.
async fn announce(database: &TestDatabase, relay: &str, handlers: &[&str], proceed: &[&'static str]) {
    let ids: BTreeSet<_> = handlers.iter().map(|id| (*id).to_owned()).collect();
    let handlers = [("orders.order-placed.v1".to_owned(), ids)].into();
    let lasts = Duration::from_hours(24 * 365);
    let announcement = Announcement { relay, handlers: &handlers, proceed, lasts, now: at(0) };
    SeaOrmStore::new(database.db.clone()).announce(&announcement).await.unwrap();
}

async fn a_healthy_outbox_has_no_finding_and_it_is_said_what_was_checked(database: &TestDatabase) {
    let subject = Sql::new(database);
    announce(database, "one", &["a.b"], &[]).await;
    announce(database, "two", &["a.b"], &[]).await;
    subject.append(&placed_many(3)).await;
    let (token, rows) = claim(&subject, 2, at(0)).await;
    mark(&subject, token, &rows[..1], &Transition::Dispatched, at(0)).await;
    let diagnosis = look(database, &pinned(10)).await;
    assert_eq!(diagnosis.findings, []);
    assert_eq!(diagnosis.unasked, [], "this login may ask everything");
    assert_eq!(Some(diagnosis.at), at(10));
    for what in ["the tables", "indexes", "expired leases", "dead letters", "pauses", "clocks"] {
        assert!(diagnosis.checked.contains(&what), "{what}: {:?}", diagnosis.checked);
    }
    // By the real clock as well, on a table in use.
    subject.append(&[placed(9)]).await;
    let mut options = DoctorOptions::default();
    options.long_transaction = Duration::from_hours(24);
    assert_eq!(look(database, &options).await.findings, []);
}

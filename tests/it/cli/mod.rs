mod bulk;
mod look;
mod place;
mod transcript;
mod verbs;
mod wide;

use outbox_core::{
    Envelope, ErrorClass, RowId,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::Progress,
};
use outbox_tests::{
    conformance::{claim, mark},
    database::{Backend, TestDatabase},
    events::placed,
    subject::{Sql, Subject},
};
use sea_orm::ConnectionTrait;

fn dead(class: ErrorClass) -> Transition {
    let failed = FailedAttempt { handler: Some("mail.confirm".into()), class, error: "no such shop".into() };
    Transition::Dead(AttemptOutcome::new(Progress::new(), vec![failed]))
}

/// Stores a message and makes it a dead letter.
async fn dead_letter(subject: &Sql, envelope: Envelope, class: ErrorClass) -> RowId {
    let id = subject.append(&[envelope]).await[0];
    let (token, rows) = claim(subject, 1, None).await;
    assert_eq!(rows[0].id, id);
    mark(subject, token, &rows, &dead(class), None).await;
    id
}

async fn dead_order(subject: &Sql, class: ErrorClass) -> String {
    dead_letter(subject, placed(1), class).await.to_string()
}

async fn execute(database: &TestDatabase, sql: &str) {
    database.db.execute_unprepared(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// All leases have expired long ago.
async fn expire(database: &TestDatabase) {
    let then = match database.backend {
        Backend::Sqlite => "2020-01-01T00:00:00.000000+00:00",
        _ => "2020-01-01 00:00:00",
    };
    execute(database, &format!("UPDATE outbox SET lease_expires_at = '{then}' WHERE status = 'claimed'"))
        .await;
}

/// Everything that is finished was finished long ago.
async fn age(database: &TestDatabase) {
    let then = match database.backend {
        Backend::Sqlite => "2020-01-01T00:00:00.000000+00:00",
        _ => "2020-01-01 00:00:00",
    };
    execute(database, &format!("UPDATE outbox SET finished_at = '{then}' WHERE finished_at IS NOT NULL"))
        .await;
    execute(database, &format!("UPDATE outbox SET resolved_at = '{then}' WHERE resolved_at IS NOT NULL"))
        .await;
    execute(database, &format!("UPDATE outbox_attempts SET failed_at = '{then}'")).await;
}

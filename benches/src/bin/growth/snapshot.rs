//! Claims while somebody holds an old snapshot open, so that no version of a row can be removed. It gets worse, and is
//! to be over after the release.

use crate::pages;
use outbox_benches::{Backlog, append, connect, drain, fill, raw::Statements};
use sea_orm::{ConnectionTrait, DatabaseConnection, IsolationLevel, TransactionTrait};

const STEPS: usize = 5;

/// Rows that are due whenever a claim is measured.
const DUE: usize = 1_000;

pub(crate) async fn run(db: &DatabaseConnection, url: &str, events: usize) {
    let statements = Statements::listen(db, 100).await;
    println!("| events since the snapshot | pages of an unordered claim | of an ordered claim, 1,000 keys |");
    println!("| --- | ---: | ---: |");
    let unordered = measure(db, url, events / STEPS, &statements, Backlog::Unordered).await;
    let ordered = measure(db, url, events / STEPS, &statements, Backlog::Keys(1_000)).await;
    for ((name, unordered), (_, ordered)) in unordered.iter().zip(&ordered) {
        println!("| {name} | {unordered} | {ordered} |");
    }
}

async fn measure(
    db: &DatabaseConnection,
    url: &str,
    step: usize,
    statements: &Statements,
    backlog: Backlog,
) -> Vec<(String, i64)> {
    let pages = async || match backlog {
        Backlog::Unordered => pages::unordered(db, statements).await,
        _ => pages::ordered(db).await,
    };
    fill(db, backlog, DUE).await;
    let mut found = vec![("0".to_owned(), pages().await)];
    let other = connect(url).await;
    let snapshot = other.begin_with_config(Some(IsolationLevel::RepeatableRead), None).await;
    let snapshot = snapshot.expect("a transaction");
    snapshot.execute_unprepared("SELECT count(*) FROM outbox").await.expect("a snapshot");
    for n in 1..=STEPS {
        // What is drained is what has waited longest, so as many as before are due.
        append(db, backlog, step, 70).await;
        drain(db, 1, step).await;
        db.execute_unprepared("VACUUM ANALYZE outbox").await.expect("statistics");
        found.push((format!("{}", n * step), pages().await));
    }
    snapshot.rollback().await.expect("an end");
    db.execute_unprepared("VACUUM ANALYZE outbox").await.expect("a vacuum");
    found.push(("released, after VACUUM".to_owned(), pages().await));
    found
}

//! Pages that a claim of 100 rows touches, as `EXPLAIN (ANALYZE, BUFFERS)` tells. What it claims is given back.

use outbox_benches::raw::{Statements, request};
use outbox_core::{OutboxStore, store::OrderedRequest};
use outbox_seaorm::SeaOrmStore;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement, TransactionTrait};
use std::sync::{Arc, Mutex};

const LIMIT: u32 = 100;

const UNDO: &str = "UPDATE outbox SET status = 'pending', attempts = 0, claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL WHERE status = 'claimed'";

/// Of a claim of unordered rows, which is one statement.
pub(crate) async fn unordered(db: &DatabaseConnection, statements: &Statements) -> i64 {
    pages(db, &[statements.claim_text()]).await
}

/// Of a claim of ordered rows, which is several: those that a claim sends are heard, and sent again.
pub(crate) async fn ordered(db: &DatabaseConnection) -> i64 {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut listening = db.clone();
    let sink = heard.clone();
    listening.set_metric_callback(move |info| {
        sink.lock().expect("no panic").push(info.statement.to_string());
    });
    let store = SeaOrmStore::new(listening);
    store.check().await.expect("tables");
    heard.lock().expect("no panic").clear();
    let asked = OrderedRequest { claim: request(LIMIT), after: None };
    let claimed = store.claim_ordered(&asked).await.expect("a claim").claimed;
    assert_eq!(claimed.rows.len(), LIMIT as usize, "rows are due");
    for sql in [UNDO, "VACUUM outbox"] {
        db.execute_unprepared(sql).await.expect("rows as they were");
    }
    let heard = std::mem::take(&mut *heard.lock().expect("no panic"));
    pages(db, &heard).await
}

/// One after the other in a transaction that is rolled back.
async fn pages(db: &DatabaseConnection, statements: &[String]) -> i64 {
    let tx = db.begin().await.expect("a transaction");
    let mut pages = 0;
    let planned = |sql: &&String| ["SELECT", "WITH", "UPDATE"].iter().any(|word| sql.starts_with(word));
    for sql in statements.iter().filter(planned) {
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}");
        let row = tx.query_one_raw(Statement::from_string(DbBackend::Postgres, explain)).await;
        let plan: sea_orm::JsonValue =
            row.expect("a plan").expect("a row").try_get_by_index(0).expect("JSON");
        let touched = |kind: &str| plan[0]["Plan"][kind].as_i64().expect("a number");
        pages += touched("Shared Hit Blocks") + touched("Shared Read Blocks");
    }
    tx.rollback().await.expect("a rollback");
    pages
}

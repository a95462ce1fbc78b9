//! What the benchmarks share: a database, backlogs, and a relay that drains them.

// A benchmark fails by panicking.
#![allow(clippy::missing_panics_doc)]

pub mod own;
pub mod peers;
pub mod raw;

use outbox_core::{Envelope, HandlerError, OutboxEvent, Relay, RelayConfig, Router};
use outbox_seaorm::{Outbox, SeaOrmStore, TableNames, migrate};
use schemars::JsonSchema;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, TransactionTrait};
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// An event of about 100 bytes of JSON.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "bench.order-placed", version = 1, ordering = none)]
pub struct OrderPlaced {
    /// A number.
    pub order_id: u64,
    /// Fills the payload.
    pub note: String,
}

impl OrderPlaced {
    /// An order by its number.
    pub fn numbered(order_id: u64) -> Self {
        Self::noted(order_id, NOTE)
    }

    fn noted(order_id: u64, note: usize) -> Self {
        Self { order_id, note: "x".repeat(note) }
    }
}

/// Letters of a note that make about 100 bytes of JSON.
const NOTE: usize = 70;

/// The rows that a relay finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// Rows without order.
    Unordered,
    /// Rows spread over so many keys.
    Keys(usize),
    /// Half of the rows wait behind a dead letter of one key; the others are spread over a thousand keys.
    BlockedHead,
}

impl Backlog {
    /// What the tables call it.
    pub fn name(self) -> String {
        match self {
            Self::Unordered => "unordered".to_owned(),
            Self::Keys(keys) => format!("{keys} keys"),
            Self::BlockedHead => "half behind a blocked head".to_owned(),
        }
    }

    fn key(self, row: usize) -> Option<String> {
        match self {
            Self::Unordered => None,
            Self::Keys(keys) => Some(format!("key-{}", row % keys)),
            Self::BlockedHead if row.is_multiple_of(2) => Some("blocked".to_owned()),
            Self::BlockedHead => Some(format!("key-{}", row / 2 % 1_000)),
        }
    }
}

/// Connects and makes the tables anew.
pub async fn connect(url: &str) -> DatabaseConnection {
    connect_with(url, 20).await
}

/// The same, with so many connections at most.
pub async fn connect_with(url: &str, connections: u32) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.max_connections(connections).sqlx_logging(false);
    let db = Database::connect(options).await.expect("a database");
    if db.get_database_backend() == DbBackend::Sqlite {
        db.execute_unprepared("PRAGMA journal_mode = WAL").await.expect("WAL");
    }
    migrate(&db, TableNames::new()).await.expect("migrations");
    db
}

/// Empties the outbox and fills it with this backlog.
pub async fn fill(db: &DatabaseConnection, backlog: Backlog, rows: usize) {
    fill_with(db, backlog, rows, NOTE).await;
}

/// The same, with notes of so many letters.
pub async fn fill_with(db: &DatabaseConnection, backlog: Backlog, rows: usize, note: usize) {
    let empty: &[&str] = match db.get_database_backend() {
        DbBackend::Postgres => &["TRUNCATE outbox, outbox_attempts, outbox_keys"],
        DbBackend::MySql => &["TRUNCATE outbox", "TRUNCATE outbox_attempts", "TRUNCATE outbox_keys"],
        _ => &["DELETE FROM outbox", "DELETE FROM outbox_attempts", "DELETE FROM outbox_keys"],
    };
    for sql in empty {
        db.execute_unprepared(sql).await.expect("an empty table");
    }
    append(db, backlog, rows, note).await;
    if backlog == Backlog::BlockedHead {
        let now =
            if db.get_database_backend() == DbBackend::Sqlite { "created_at" } else { "CURRENT_TIMESTAMP" };
        let blocked = format!(
            "UPDATE outbox SET status = 'dead', finished_at = {now}, error_class = 'terminal' WHERE id = (
                SELECT id FROM (SELECT MIN(id) AS id FROM outbox WHERE ordering_key = '=blocked') AS first)"
        );
        db.execute_unprepared(&blocked).await.expect("a dead row");
    }
    analyze(db).await;
}

/// Adds so many rows to what is there, with notes of so many letters.
pub async fn append(db: &DatabaseConnection, backlog: Backlog, rows: usize, note: usize) {
    let all: Vec<usize> = (0..rows).collect();
    // A transaction of at most some megabytes.
    for part in all.chunks((1_000_000 / (note + 1)).clamp(10, 1_000)) {
        let envelopes: Vec<_> = part.iter().map(|row| envelope(backlog, *row, note)).collect();
        let tx = db.begin().await.expect("a transaction");
        Outbox::default().append_envelopes(&tx, &envelopes).await.expect("rows");
        tx.commit().await.expect("a commit");
    }
}

async fn analyze(db: &DatabaseConnection) {
    let analyze: &[&str] = match db.get_database_backend() {
        DbBackend::Postgres => &["VACUUM ANALYZE outbox", "CHECKPOINT"],
        DbBackend::MySql => &["ANALYZE TABLE outbox"],
        _ => &["PRAGMA wal_checkpoint(TRUNCATE)"],
    };
    for sql in analyze {
        let statement = sea_orm::Statement::from_string(db.get_database_backend(), *sql);
        db.query_all_raw(statement).await.expect("statistics");
    }
}

fn envelope(backlog: Backlog, row: usize, note: usize) -> Envelope {
    let event = OrderPlaced::noted(row as u64, note);
    let envelope = Envelope::new(&event).expect("a small event");
    backlog.key(row).map_or(envelope.clone(), |key| envelope.with_ordering_key(&key))
}

/// Lets so many relays with a handler that does nothing drain so many rows. Returns rows a second.
pub async fn drain(db: &DatabaseConnection, relays: usize, rows: usize) -> f64 {
    let (handled, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let started = Instant::now();
    let mut running = Vec::new();
    for n in 0..relays {
        let (handled, done) = (handled.clone(), done.clone());
        let handle = {
            let done = done.clone();
            move |_: OrderPlaced| {
                if handled.fetch_add(1, Ordering::Relaxed) + 1 == rows {
                    done.notify_waiters();
                }
                async { Ok::<(), HandlerError>(()) }
            }
        };
        let router = Router::builder().on("bench.nothing", handle).build().expect("a router");
        let config = RelayConfig { name: format!("bench-{n}"), ..RelayConfig::default() };
        let relay = Relay::new(SeaOrmStore::new(db.clone()), router).with_config(config);
        let done = async move { done.notified().await };
        running.push(tokio::spawn(async move { relay.run(done).await }));
    }
    for relay in running {
        let ended = tokio::time::timeout(Duration::from_mins(10), relay).await;
        ended.expect("it ends").expect("no panic").expect("no error");
    }
    #[allow(clippy::cast_precision_loss)] // A benchmark's count.
    {
        rows as f64 / started.elapsed().as_secs_f64()
    }
}

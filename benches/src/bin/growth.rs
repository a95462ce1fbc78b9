//! What a claim costs when much is in the table that does not concern it, on PostgreSQL: pages touched by a claim of 100
//! rows, as `EXPLAIN (ANALYZE, BUFFERS)` tells, and the memory of a relay with a backlog of a million rows.
//!
//! `cargo run --release -p outbox-benches --bin growth -- URL [MILLIONS]`
//!
//! The tables of the database are emptied.

// It is a program that prints.
#![allow(clippy::print_stdout)]

use outbox_benches::{Backlog, connect, drain, fill, raw::Statements};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};

/// Rows that are like those of the product, but for what the text changes.
const ROWS: &str = "INSERT INTO outbox (message_id, event_type, event_version, payload, occurred_at, status, available_at, finished_at)
    SELECT gen_random_uuid(), TYPE, 1, '{\"order_id\":1,\"note\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}',
           now(), STATUS, AVAILABLE, FINISHED
      FROM generate_series(1, COUNT)";

async fn add(db: &DatabaseConnection, count: u32, changes: [(&str, &str); 4]) {
    let mut sql = ROWS.replace("COUNT", &count.to_string());
    for (hole, text) in changes {
        sql = sql.replace(hole, text);
    }
    for sql in [&*sql, "VACUUM ANALYZE outbox"] {
        db.execute_unprepared(sql).await.expect("rows");
    }
}

async fn pages(db: &DatabaseConnection, statements: &Statements) -> i64 {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", statements.claim_text());
    let row = db.query_one_raw(Statement::from_string(DbBackend::Postgres, explain)).await;
    let plan: sea_orm::JsonValue = row.expect("a plan").expect("a row").try_get_by_index(0).expect("JSON");
    let pages = |kind: &str| plan[0]["Plan"][kind].as_i64().expect("a number");
    pages("Shared Hit Blocks") + pages("Shared Read Blocks")
}

/// The most memory that this process has had, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let url = arguments.first().expect("the URL of a database whose outbox may be emptied");
    let millions: u32 = arguments.get(1).map_or(5, |text| text.parse().expect("a number"));
    let db = connect(url).await;
    let statements = Statements::listen(&db, 100).await;
    println!("| besides 1,000 rows that are due | pages of a claim of 100 |\n| --- | ---: |");
    let due = [
        ("TYPE", "'bench.order-placed'"),
        ("STATUS", "'pending'"),
        ("AVAILABLE", "now()"),
        ("FINISHED", "NULL"),
    ];
    let shape = |n: usize, change: (&'static str, &'static str)| {
        let mut changes = due;
        changes[n] = change;
        changes
    };
    let finished = [due[0], ("STATUS", "'dispatched'"), due[2], ("FINISHED", "now()")];
    let cases = [
        ("nothing", 0, due),
        ("a million finished rows", 1_000_000, finished),
        ("100,000 rows that nobody reads, before them", 100_000, shape(0, ("TYPE", "'nobody.knows-this'"))),
        ("millions of finished rows", millions * 1_000_000, finished),
        (
            "millions of rows due in a week",
            millions * 1_000_000,
            shape(2, ("AVAILABLE", "now() + interval '7 days'")),
        ),
    ];
    for (name, count, changes) in cases {
        fill(&db, Backlog::Unordered, 0).await;
        if count > 0 {
            add(&db, count, changes).await;
        }
        add(&db, 1_000, due).await;
        println!("| {name} ({count}) | {} |", pages(&db, &statements).await);
    }
    fill(&db, Backlog::Unordered, 0).await;
    add(&db, 1_000_000, due).await;
    let before = memory();
    let rate = drain(&db, 1, 50_000).await;
    println!("\na backlog of 1,000,000: {before} MiB before, {} MiB at most, {rate:.0} rows/s", memory());
}

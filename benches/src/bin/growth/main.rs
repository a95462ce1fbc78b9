//! What stays the same when much is in the table, or when much happens around it, on PostgreSQL:
//!
//! `cargo run --release -p outbox-benches --bin growth -- URL [PARTS] [ROWS] [EVENTS] [SECONDS]`
//!
//! Parts, with commas between; all of them when there is none:
//!
//! | | | by default |
//! | --- | --- | --- |
//! | `claims` | pages that a claim touches beside so many rows that do not concern it | 5,000,000 rows |
//! | `memory` | the most memory of a relay with a fifth of so many rows before it | |
//! | `snapshot` | pages of a claim while an old snapshot is held open and so many events pass | 100,000 events |
//! | `purge` | latency at 500 events a second for so many seconds while old rows are purged | 20 seconds |
//! | `wakeups` | saving by 64 writers side by side, with `notify::tell` and without | a tenth of the events a round |
//!
//! The tables of the database are emptied. Five million rows take three gigabytes.

// It is a program that prints.
#![allow(clippy::print_stdout)]

mod claims;
mod pages;
mod purge;
mod snapshot;
mod wakeups;

use outbox_benches::{Backlog, append, connect, drain, fill};
use sea_orm::DatabaseConnection;

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number =
        |n: usize, default: usize| arguments.get(n).map_or(default, |text| text.parse().expect("a number"));
    let url = arguments.first().expect("the URL of a database whose outbox may be emptied");
    let parts = arguments.get(1).map_or("claims,memory,snapshot,purge,wakeups", String::as_str);
    let (rows, events, seconds) = (number(2, 5_000_000), number(3, 100_000), number(4, 20));
    let db = connect(url).await;
    for part in parts.split(',') {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("\n{part}, load {}\n", load.trim());
        match part {
            "claims" => claims::run(&db, rows).await,
            "memory" => relay_memory(&db, rows / 5).await,
            "snapshot" => snapshot::run(&db, url, events).await,
            "purge" => purge::run(&db, events, seconds).await,
            "wakeups" => wakeups::run(url, events / 10).await,
            other => panic!("{other} is no part"),
        }
    }
}

/// To be reached: 100 MB.
async fn relay_memory(db: &DatabaseConnection, rows: usize) {
    fill(db, Backlog::Unordered, 0).await;
    append(db, Backlog::Unordered, rows, 70).await;
    let before = memory();
    let rate = drain(db, 1, rows / 20).await;
    println!("a backlog of {rows}: {before} MiB before, {} MiB at most, {rate:.0} rows/s", memory());
}

/// The most memory that this process has had, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

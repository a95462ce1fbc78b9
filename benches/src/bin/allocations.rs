//! How often an event's way asks for memory, and for how much, counted by a heap profiler:
//!
//! `cargo run --release -p outbox-benches --bin allocations -- URL [ROWS]`
//!
//! *Encoding* is building the event, its envelope and its JSON. *Draining* is a relay with one handler, from the claim to
//! the mark, the driver's work included; what a relay costs at its start is taken out by draining two backlogs and
//! comparing them. The outbox of the database is emptied.

// It is a program that prints.
#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

use outbox_benches::{Backlog, OrderPlaced, connect, drain, fill_with};
use outbox_core::Envelope;
use sea_orm::DatabaseConnection;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Payloads, and by how much fewer rows of the large ones there are.
const PAYLOADS: [(&str, usize, usize); 3] = [("100 B", 70, 1), ("1 kB", 970, 1), ("100 kB", 99_970, 10)];

/// Blocks and bytes that were asked for so far.
fn asked() -> [f64; 2] {
    let stats = dhat::HeapStats::get();
    [stats.total_blocks as f64, stats.total_bytes as f64]
}

fn since(before: [f64; 2]) -> [f64; 2] {
    let now = asked();
    [now[0] - before[0], now[1] - before[1]]
}

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let url = arguments.first().expect("the URL of a database whose outbox may be emptied");
    let rows = arguments.get(1).map_or(5_000, |text| text.parse().expect("a number"));
    let db = connect(url).await;
    let profiler = dhat::Profiler::builder().testing().build();
    println!("| payload | | allocations an event | bytes an event |\n| --- | --- | ---: | ---: |");
    for (name, note, fewer) in PAYLOADS {
        let rows = rows / fewer;
        row(name, "encoding", encoding(note, rows));
        row(name, "draining", draining(&db, note, rows).await);
    }
    drop(profiler);
}

fn row(payload: &str, what: &str, [blocks, bytes]: [f64; 2]) {
    println!("| {payload} | {what} | {blocks:.1} | {bytes:.0} |");
}

fn encoding(note: usize, events: usize) -> [f64; 2] {
    let before = asked();
    for number in 0..events {
        let event = OrderPlaced { order_id: number as u64, note: "x".repeat(note) };
        black_box(Envelope::new(black_box(&event)).expect("an event"));
    }
    since(before).map(|all| all / events as f64)
}

/// The difference between a backlog of three times as many and one of so many.
async fn draining(db: &DatabaseConnection, note: usize, rows: usize) -> [f64; 2] {
    let mut all = [[0.0; 2]; 2];
    for (times, asked_for) in [1, 3].into_iter().zip(&mut all) {
        fill_with(db, Backlog::Unordered, rows * times, note).await;
        let before = asked();
        drain(db, 1, rows * times).await;
        *asked_for = since(before);
    }
    let [small, large] = all;
    [0, 1].map(|n| (large[n] - small[n]) / (2 * rows) as f64)
}

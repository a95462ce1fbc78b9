//! What order costs: the same relay on the same number of rows, unordered and ordered, interleaved in one run.
//!
//! `cargo run --release -p outbox-benches --bin order -- URL [ROWS] [ROUNDS] [RELAYS]`
//!
//! The tables of the database are emptied.

// It is a program that prints.
#![allow(clippy::print_stdout)]

use outbox_benches::{Backlog, connect, drain, fill};

const BACKLOGS: [Backlog; 5] = [
    Backlog::Unordered,
    Backlog::Keys(10),
    Backlog::Keys(1_000),
    Backlog::Keys(100_000),
    Backlog::BlockedHead,
];

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number =
        |n: usize, default: usize| arguments.get(n).map_or(default, |text| text.parse().expect("a number"));
    let url = arguments.first().expect("the URL of a database whose outbox may be emptied");
    let (rows, rounds, relays) = (number(1, 100_000), number(2, 3), number(3, 1));
    let db = connect(url).await;
    let mut rates: [Vec<f64>; 5] = Default::default();
    for round in 0..rounds {
        for (backlog, rates) in BACKLOGS.iter().zip(&mut rates) {
            fill(&db, *backlog, rows).await;
            // A fifth, so that the backlog is there all the time.
            let rate = drain(&db, relays, rows / 5).await;
            println!("round {round}: {:>28} {rate:>9.0} rows/s", backlog.name());
            rates.push(rate);
        }
    }
    println!("\n| backlog of {rows} rows, {relays} relay(s) | rows/s (median) | of unordered | spread |");
    println!("| --- | ---: | ---: | ---: |");
    let median = |rates: &[f64]| {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
    };
    let (unordered, ..) = median(&rates[0]);
    for (backlog, rates) in BACKLOGS.iter().zip(&rates) {
        let (rate, least, most) = median(rates);
        println!("| {} | {rate:.0} | {:.2} | {least:.0}–{most:.0} |", backlog.name(), rate / unordered);
    }
}

//! What it costs 64 writers that their process tells others of their commits. To be reached: 5 % at most.

use outbox_benches::{
    Backlog, connect_with, fill,
    own::{self, Saved},
};

const WRITERS: u32 = 64;
const ROUNDS: usize = 5;

pub(crate) async fn run(url: &str, events: usize) {
    let db = connect_with(url, WRITERS + 4).await;
    own::create_orders(&db).await;
    let mut rates = [Vec::new(), Vec::new()];
    // A round that is not counted opens the connections.
    for round in 0..=ROUNDS {
        for tells in if round % 2 == 0 { [false, true] } else { [true, false] } {
            fill(&db, Backlog::Unordered, 0).await;
            let telling = tells.then(|| own::tell(&db));
            let rate = own::enqueue(&db, events as u64, WRITERS.into(), Saved::Events(1)).await;
            telling.iter().for_each(tokio::task::JoinHandle::abort);
            if round > 0 {
                rates[usize::from(tells)].push(rate);
            }
        }
    }
    println!("| {WRITERS} writers, {events} saves | a second (median) | spread |\n| --- | ---: | ---: |");
    let medians = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        [rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]]
    });
    for (name, [least, median, most]) in ["alone", "with notify::tell"].into_iter().zip(medians) {
        println!("| {name} | {median:.0} | {least:.0}–{most:.0} |");
    }
    println!("\nwith / alone: {:.3}", medians[1][1] / medians[0][1]);
}

//! The product, the same statements driven raw, and the peers, interleaved on one PostgreSQL server:
//!
//! `cargo run --release -p outbox-benches --bin throughput -- URL [SCENARIOS] [ROUNDS] [ROWS]`
//!
//! The login must be allowed to create databases; each run of a subject has a fresh one. Scenarios, with commas between:
//! `s1` saving (4 producers, a business row and an event), `s2` draining a backlog, `s3` from commit to handler at 200
//! events a second, `s7` draining with an old snapshot held open. The peers are built first, each with its own lockfile;
//! one that cannot be built is said to be missing.

// It is a program that prints.
#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

mod child;
mod subject;

use subject::{Measured, Server, Subject};

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments[0] == "--as" {
        let url = std::env::var("DATABASE_URL").expect("DATABASE_URL");
        return child::run(&arguments[1], &url, &arguments[2..]).await;
    }
    let text = |n: usize, default: &'static str| arguments.get(n).map_or(default, String::as_str).to_owned();
    let number = |n: usize, default: &'static str| text(n, default).parse::<usize>().expect("a number");
    let (scenarios, rounds, rows) = (text(1, "s1,s2,s3,s7"), number(2, "5"), number(3, "20000"));
    let server = Server::connect(&arguments[0]).await;
    let peers = Subject::peers();
    for scenario in scenarios.split(',') {
        run(&server, scenario, &peers, rounds, rows).await;
    }
}

async fn run(server: &Server, scenario: &str, peers: &[Subject], rounds: usize, rows: usize) {
    let subjects = Subject::of(scenario, peers, rows);
    let mut measured: Vec<Vec<Measured>> = subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        // Every other round backwards, so that nobody always runs after the same one.
        let mut order: Vec<_> = (0..subjects.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for n in order {
            match server.run(&subjects[n], scenario == "s7").await {
                Ok(result) => {
                    println!("{scenario} round {round}: {:<28} {result}", subjects[n].name);
                    measured[n].push(result);
                }
                Err(error) => println!("{scenario} round {round}: {:<28} {error}", subjects[n].name),
            }
        }
    }
    table(scenario, &subjects, &measured);
}

/// Medians; rates as a part of the best that the raw statements reached.
fn table(scenario: &str, subjects: &[Subject], measured: &[Vec<Measured>]) {
    let of = |n: usize, value: fn(&Measured) -> f64| {
        let mut all: Vec<_> = measured[n].iter().map(value).collect();
        all.sort_by(f64::total_cmp);
        (!all.is_empty()).then(|| (all[all.len() / 2], all[0], all[all.len() - 1]))
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("\n{scenario}, load {}", load.trim());
    let is_latency = scenario == "s3";
    let raw = |n: &usize| subjects[*n].name.starts_with("raw");
    let ceiling =
        (0..subjects.len()).filter(raw).filter_map(|n| of(n, |one| one.first)).map(|(median, ..)| median);
    let ceiling = ceiling.fold(f64::NAN, f64::max);
    if is_latency {
        println!(
            "| subject | p50 ms | p99 ms | spread of p50 | WAL bytes an event | transactions an event |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    } else {
        println!("| subject | a second | of raw | spread | WAL bytes an event | transactions an event |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    }
    for (n, subject) in subjects.iter().enumerate() {
        let Some((median, least, most)) = of(n, |one| one.first) else {
            println!("| {} | not measured: it could not be built or failed | | | | |", subject.name);
            continue;
        };
        let second = of(n, |one| one.second).map_or(f64::NAN, |(median, ..)| median);
        let wal = of(n, |one| one.wal).map_or(f64::NAN, |(median, ..)| median);
        let transactions = of(n, |one| one.transactions).map_or(f64::NAN, |(median, ..)| median);
        let name = &subject.name;
        if is_latency {
            println!(
                "| {name} | {median:.1} | {second:.1} | {least:.1}–{most:.1} | {wal:.0} | {transactions:.2} |"
            );
        } else {
            let part = median / ceiling;
            println!(
                "| {name} | {median:.0} | {part:.2} | {least:.0}–{most:.0} | {wal:.0} | {transactions:.2} |"
            );
        }
    }
    println!();
}

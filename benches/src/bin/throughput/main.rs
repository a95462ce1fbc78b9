//! The product, the same statements driven raw, and the peers, interleaved on one PostgreSQL server:
//!
//! `cargo run --release -p outbox-benches --bin throughput -- URL [SCENARIOS] [ROUNDS] [ROWS] [SECONDS]`
//!
//! The login must be allowed to create databases; each run of a subject has a fresh one. Scenarios, with commas between:
//!
//! | | |
//! | --- | --- |
//! | `s1` | saving: 4 producers, a business row and an event; a quarter of the rows |
//! | `s2` | draining a backlog |
//! | `s3` | from commit to handler, 200 events a second for so many seconds |
//! | `s4` | two processes on a backlog of a quarter of the rows, one is killed after a third; leases of 3 seconds |
//! | `s5` | `s3` with handlers of which one in a hundred always fails: dead after three attempts |
//! | `s6` | two workers on a backlog of a hundred keys, a quarter of the rows: events out of order |
//! | `s7` | `s2` with an old snapshot held open |
//! | `s8` | `s3` with a hundred keys, the handler of one of which sleeps all the time; ours alone |
//!
//! The peers are built first, each with its own lockfile; one that cannot be built is said to be missing.

// It is a program that prints.
#![allow(clippy::print_stdout)]

mod child;
mod kill;
mod server;
mod subject;
mod table;

use server::Server;
use subject::{Size, Subject};

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments[0] == "--as" {
        let url = std::env::var("DATABASE_URL").expect("DATABASE_URL");
        return child::run(&arguments[1], &url, &arguments[2..]).await;
    }
    let number =
        |n: usize, default: usize| arguments.get(n).map_or(default, |text| text.parse().expect("a number"));
    let scenarios = arguments.get(1).map_or("s1,s2,s3,s4,s5,s6,s7,s8", String::as_str);
    let size = Size { rounds: number(2, 5), rows: number(3, 20_000), seconds: number(4, 10) };
    let server = Server::connect(&arguments[0]).await;
    let peers = Subject::peers();
    for scenario in scenarios.split(',') {
        run(&server, scenario, &peers, size).await;
    }
}

async fn run(server: &Server, scenario: &str, peers: &[Subject], size: Size) {
    let subjects = Subject::of(scenario, peers, size);
    let mut results: Vec<Result<Vec<_>, String>> = subjects.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..size.rounds {
        // Every other round backwards, so that nobody always runs after the same one.
        let mut order: Vec<_> = (0..subjects.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for n in order {
            let subject = &subjects[n];
            let result = match scenario {
                "s4" => kill::run(server, subject).await,
                _ => server.run(subject, scenario == "s7").await,
            };
            match (result, &mut results[n]) {
                (Ok(measured), result) => {
                    println!("{scenario} round {round}: {:<34} {}", subject.name, table::line(&measured));
                    match result {
                        Ok(rounds) => rounds.push(measured),
                        Err(_) => *result = Ok(vec![measured]),
                    }
                }
                (Err(why), result) => {
                    println!("{scenario} round {round}: {:<34} {why}", subject.name);
                    assert!(!subject.is_own(), "{}: {why}", subject.name);
                    // What other rounds measured stays.
                    if result.as_ref().is_ok_and(Vec::is_empty) {
                        *result = Err(why);
                    }
                }
            }
        }
    }
    table::print(scenario, &subjects, &results);
}

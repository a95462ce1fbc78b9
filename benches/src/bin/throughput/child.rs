//! The product and the raw statements, as programs that are called as those of the peers.

use outbox_benches::{
    Backlog, connect, drain, fill,
    own::{self, Saved},
    peers::{Command, PRODUCERS, Times, command, ready},
    raw::Statements,
};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

/// Runs as this subject.
pub(crate) async fn run(subject: &str, url: &str, arguments: &[String]) {
    let db = connect(url).await;
    db.execute_unprepared(
        "CREATE TABLE IF NOT EXISTS bench_orders (id bigserial PRIMARY KEY, cents bigint NOT NULL)",
    )
    .await
    .expect("a table");
    if arguments[0] == "produce" {
        return produce(&db, &arguments[1..]).await;
    }
    match command(arguments) {
        Command::Enqueue(n) => enqueue(subject, &db, n).await,
        Command::Drain(n, workers) => {
            let rows = usize::try_from(n).expect("a number of rows");
            let statements = Statements::listen(&db, 100).await;
            fill(&db, Backlog::Unordered, rows).await;
            ready();
            let pool = db.get_postgres_connection_pool();
            let rate = match subject {
                "raw" => statements.drain(pool, workers, rows).await,
                _ => drain(&db, workers, rows).await,
            };
            println!("rate {rate}");
        }
        Command::Latency(rate, seconds) => {
            let times = Arc::new(Times::new(rate * seconds));
            let relay = tokio::spawn({
                let (db, times) = (db.clone(), times.clone());
                async move { own::relay(&db, times).await }
            });
            if subject == "notify" {
                own::listen(&db);
            }
            ready();
            if subject == "notify" {
                elsewhere(url, rate, seconds, &times).await;
            } else {
                own::produce(&db, rate, seconds, |number| times.committed(number)).await;
            }
            while !times.all_handled() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            relay.abort();
            times.tell();
        }
    }
}

async fn enqueue(subject: &str, db: &DatabaseConnection, n: u64) {
    let statements = Statements::listen(db, 100).await;
    ready();
    let rate = match subject {
        "raw" => statements.enqueue(db.get_postgres_connection_pool(), n, PRODUCERS).await,
        "seaorm" => own::enqueue(db, n, PRODUCERS, Saved::RowAlone).await,
        "five" => own::enqueue(db, n, PRODUCERS, Saved::Events(5)).await,
        _ => own::enqueue(db, n, PRODUCERS, Saved::Events(1)).await,
    };
    println!("rate {rate}");
}

/// Produces in this process what another one handles, and says when each was committed.
async fn produce(db: &DatabaseConnection, arguments: &[String]) {
    let number = |n: usize| arguments[n].parse().expect("a number");
    own::tell(db);
    own::produce(db, number(0), number(1), |event| println!("{event} {}", Times::now())).await;
}

async fn elsewhere(url: &str, rate: u64, seconds: u64, times: &Times) {
    let program = std::env::current_exe().expect("a program");
    let mut child = std::process::Command::new(program)
        .args(["--as", "ours", "produce", &rate.to_string(), &seconds.to_string()])
        .env("DATABASE_URL", url)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let output = child.stdout.take().expect("its output");
    let lines = tokio::task::spawn_blocking(move || {
        BufReader::new(output).lines().map(|line| line.expect("a line")).collect::<Vec<_>>()
    });
    for line in lines.await.expect("no panic") {
        let (event, time) = line.split_once(' ').expect("an event and its time");
        times.committed_at(event.parse().expect("a number"), time.parse().expect("a time"));
    }
    child.wait().expect("an end");
}

//! The product and the raw statements, as programs that are called as those of the peers.

use outbox_benches::{
    Backlog, connect, drain, fill,
    own::{self, Saved},
    peers::{
        ATTEMPTS, BACKOFF, Command, LEASE, Load, PRODUCERS, Sink, Times, Trouble, answer, command, ready,
    },
    raw::Statements,
};
use outbox_core::{RelayConfig, RetryPolicy};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// Runs as this subject.
pub(crate) async fn run(subject: &str, url: &str, arguments: &[String]) {
    let db = connect(url).await;
    own::create_orders(&db).await;
    if arguments[0] == "produce" {
        return produce(&db, &arguments[1..]).await;
    }
    let command = command(arguments);
    let rows = usize::try_from(command.events()).expect("a number of rows");
    match command {
        Command::Enqueue(n) => enqueue(subject, &db, n).await,
        Command::Drain(_, workers) => {
            let statements = Statements::listen(&db, 100).await;
            fill(&db, Backlog::Unordered, rows).await;
            ready();
            let rate = match subject {
                "raw" => statements.drain(db.get_postgres_connection_pool(), workers, rows).await,
                _ => drain(&db, workers, rows).await,
            };
            answer(&[("rate", rate)]);
        }
        Command::Order(_, workers) => order(&db, command, workers).await,
        Command::Latency(load) => latency(subject, &db, url, load).await,
        Command::Fill(_) => fill(&db, Backlog::Unordered, rows).await,
        Command::Work(_) => {
            ready();
            let config = RelayConfig {
                name: format!("bench-{}", std::process::id()),
                lease: LEASE,
                ..Default::default()
            };
            own::relay(&db, Arc::new(Sink::of(command)), config).await;
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
    answer(&[("rate", rate)]);
}

async fn order(db: &DatabaseConnection, command: Command, workers: usize) {
    let keys = usize::try_from(outbox_benches::peers::KEYS).expect("a few");
    fill(db, Backlog::Keys(keys), usize::try_from(command.events()).expect("a number of rows")).await;
    let sink = Arc::new(Sink::of(command));
    let started = ready();
    for n in 0..workers {
        let (db, sink) = (db.clone(), sink.clone());
        let config = RelayConfig { name: format!("bench-{n}"), ..RelayConfig::default() };
        tokio::spawn(async move { own::relay(&db, sink, config).await });
    }
    until(|| sink.is_done(command.events())).await;
    sink.tell(command, started, 0);
    if let Sink::Order(order) = &*sink {
        assert_eq!(order.inversions(), 0, "events of a key came out of their order");
    }
}

async fn latency(subject: &str, db: &DatabaseConnection, url: &str, load: Load) {
    let command = Command::Latency(load);
    let sink = Arc::new(Sink::of(command));
    let relay = tokio::spawn({
        let (db, sink) = (db.clone(), sink.clone());
        let config = RelayConfig {
            name: "bench-latency".to_owned(),
            handler_timeout: Duration::from_secs(load.seconds + 120),
            retry: RetryPolicy { max_attempts: ATTEMPTS, base: BACKOFF, ..RetryPolicy::default() },
            ..RelayConfig::default()
        };
        async move { own::relay(&db, sink, config).await }
    });
    if subject == "notify" {
        own::listen(db);
    }
    let started = ready();
    let times = sink.times().expect("times are taken");
    match subject {
        "notify" => elsewhere(url, load, times).await,
        "keys" => own::produce(db, load, Saved::Keyed, |number| times.committed(number)).await,
        _ => own::produce(db, load, Saved::Events(1), |number| times.committed(number)).await,
    }
    until(|| sink.is_done(load.events())).await;
    let dead = if load.trouble == Trouble::Fails { dead_letters(subject, db, load).await } else { 0 };
    relay.abort();
    sink.tell(command, started, dead);
}

/// Waits for what has to die: each event that always fails, or only the first of a key, which the others wait for.
async fn dead_letters(subject: &str, db: &DatabaseConnection, load: Load) -> u64 {
    let expected = if subject == "keys" { 1 } else { load.events().div_ceil(100) };
    let count = async |status: &str| {
        let sql = format!("SELECT count(*) FROM outbox WHERE status {status}");
        let row = db.query_one_raw(Statement::from_string(DbBackend::Postgres, sql)).await;
        let count: i64 = row.expect("an answer").expect("a row").try_get_by_index(0).expect("a number");
        u64::try_from(count).expect("a count")
    };
    // The marks of the healthy ones may be on their way as well.
    let (troubled, started) = (load.events().div_ceil(100), Instant::now());
    let (dead, waiting) = loop {
        let (dead, waiting) = (count("= 'dead'").await, count("NOT IN ('dead', 'dispatched')").await);
        let ends = dead == expected && dead + waiting == troubled;
        if ends || started.elapsed() > Duration::from_mins(1) {
            break (dead, waiting);
        }
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(dead, expected, "dead letters");
    assert_eq!(dead + waiting, troubled, "dead letters, and those behind them");
    dead
}

async fn until(mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_mins(5), "events are not handled");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Produces in this process what another one handles, and says when each was committed.
async fn produce(db: &DatabaseConnection, arguments: &[String]) {
    let number = |n: usize| arguments[n].parse().expect("a number");
    let load = Load { rate: number(0), seconds: number(1), trouble: Trouble::None };
    own::tell(db);
    own::produce(db, load, Saved::Events(1), |event| println!("{event} {}", Times::now())).await;
}

async fn elsewhere(url: &str, load: Load, times: &Times) {
    let program = std::env::current_exe().expect("a program");
    let mut child = std::process::Command::new(program)
        .args(["--as", "ours", "produce", &load.rate.to_string(), &load.seconds.to_string()])
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

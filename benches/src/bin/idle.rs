//! What a relay costs that has nothing to do, with the default configuration: CPU of this process and of its database
//! connections, and statements a second.
//!
//! `cargo run --release -p outbox-benches --bin idle -- URL [SECONDS]`
//!
//! To be reached: 0.5 % of a core. CPU is read from `/proc`; that of the connections only where the database runs on
//! the same machine as PostgreSQL. The outbox of the database is emptied.

// It is a program that prints.
#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

use outbox_benches::{Backlog, OrderPlaced, connect, fill};
use outbox_core::{HandlerError, OutboxEvent, Relay, Router};
use outbox_seaorm::{SeaOrmStore, TableNames, notify};
use schemars::JsonSchema;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// An event with an order.
#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "bench.order-moved", version = 1, ordering = key(order_id))]
struct OrderMoved {
    order_id: u64,
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    ordered: bool,
    listens: bool,
}

const CASES: [Case; 3] = [
    Case { name: "an unordered event", ordered: false, listens: false },
    Case { name: "an unordered and an ordered event", ordered: true, listens: false },
    Case { name: "the same, and notify::listen", ordered: true, listens: true },
];

/// How long a relay settles down before it is measured.
const SETTLES: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let url = arguments.first().expect("the URL of a database whose outbox may be emptied");
    let seconds = arguments.get(1).map_or(60, |text| text.parse().expect("a number"));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("idle for {seconds} s each, load {}\n", load.trim());
    println!("| router | CPU seconds | % of a core | of its connections, % | statements a second |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for case in CASES {
        measure(url, case, Duration::from_secs(seconds)).await;
    }
}

async fn measure(url: &str, case: Case, time: Duration) {
    let mut db = connect(url).await;
    if case.listens && db.get_database_backend() != DbBackend::Postgres {
        return;
    }
    fill(&db, Backlog::Unordered, 0).await;
    let statements = Arc::new(AtomicU64::new(0));
    db.set_metric_callback({
        let statements = statements.clone();
        move |_| {
            statements.fetch_add(1, Ordering::Relaxed);
        }
    });
    let running = start(&db, case);
    sleep(SETTLES).await;
    let pids = backends(&db).await;
    let before = (own_cpu(), cpu_of(&pids), statements.load(Ordering::Relaxed));
    let started = Instant::now();
    sleep(time).await;
    let elapsed = started.elapsed().as_secs_f64();
    let own = own_cpu() - before.0;
    let theirs = if pids.is_empty() { f64::NAN } else { (cpu_of(&pids) - before.1) / elapsed * 100.0 };
    let statements = (statements.load(Ordering::Relaxed) - before.2) as f64 / elapsed;
    println!("| {} | {own:.3} | {:.3} | {theirs:.3} | {statements:.2} |", case.name, own / elapsed * 100.0);
    for task in running {
        assert!(!task.is_finished(), "what was to be measured has ended");
        task.abort();
    }
    db.close().await.expect("an end");
}

fn start(db: &DatabaseConnection, case: Case) -> Vec<tokio::task::JoinHandle<()>> {
    let nothing = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let mut router = Router::builder().on("bench.nothing", nothing);
    if case.ordered {
        router = router.on("bench.nothing-ordered", |_: OrderMoved| async { Ok::<(), HandlerError>(()) });
    }
    let relay = Relay::new(SeaOrmStore::new(db.clone()), router.build().expect("a router"));
    let mut running = vec![tokio::spawn(async move {
        relay.run(std::future::pending()).await.expect("a relay");
    })];
    if case.listens {
        let db = db.clone();
        running.push(tokio::spawn(async move {
            notify::listen(&db, TableNames::new()).await.expect("a listener");
        }));
    }
    running
}

/// The processes that serve this database.
async fn backends(db: &DatabaseConnection) -> Vec<i32> {
    if db.get_database_backend() != DbBackend::Postgres {
        return Vec::new();
    }
    let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()";
    let rows = db.query_all_raw(Statement::from_string(DbBackend::Postgres, sql)).await.expect("processes");
    let pids = rows.iter().map(|row| row.try_get_by_index(0).expect("a process"));
    pids.filter(|pid: &i32| Path::new(&format!("/proc/{pid}/schedstat")).exists()).collect()
}

/// CPU seconds of this process.
fn own_cpu() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc");
    tasks.map(|task| cpu(&task.expect("a thread").path())).sum()
}

fn cpu_of(pids: &[i32]) -> f64 {
    pids.iter().map(|pid| cpu(Path::new(&format!("/proc/{pid}")))).sum()
}

/// CPU seconds of a thread, as the scheduler counts them.
fn cpu(directory: &Path) -> f64 {
    let text = fs::read_to_string(directory.join("schedstat")).unwrap_or_default();
    let nanoseconds: u64 = text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

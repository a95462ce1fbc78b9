//! Purging while events come and go: it has to get on, and the events must not wait for it.

use outbox_benches::{
    Backlog, append, fill,
    own::{self, Saved},
    peers::{Command, Load, Sink, Trouble},
};
use outbox_core::{
    OutboxStore, RelayConfig,
    relay::Retention,
    store::{Finished, Purge},
};
use outbox_seaorm::SeaOrmStore;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

const RATE: u64 = 500;

/// Age at which a row is purged.
const AGE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Kept,
    Purged,
    Deleted,
}

pub(crate) async fn run(db: &DatabaseConnection, old: usize, seconds: usize) {
    own::create_orders(db).await;
    println!("{RATE} events a second for {seconds} s, {old} finished rows before\n");
    println!("| finished rows | p50 ms | p99 ms | purged | left |\n| --- | ---: | ---: | ---: | ---: |");
    for (name, case) in [
        ("kept", Case::Kept),
        ("purged every second, in batches of 1,000", Case::Purged),
        ("deleted at once, not marked", Case::Deleted),
    ] {
        let load = Load { rate: RATE, seconds: seconds as u64, trouble: Trouble::None };
        let (sink, purged) = measure(db, old, load, case).await;
        assert!(case != Case::Purged || purged > old as u64, "only {purged} rows were purged");
        let times = sink.times().expect("times are taken");
        let [p50, p99] = times.percentiles(false);
        println!("| {name} | {p50:.1} | {p99:.1} | {purged} | {} |", left(db).await);
    }
}

async fn measure(db: &DatabaseConnection, old: usize, load: Load, case: Case) -> (Arc<Sink>, u64) {
    fill(db, Backlog::Unordered, 0).await;
    append(db, Backlog::Unordered, old, 70).await;
    for sql in [
        "UPDATE outbox SET status = 'dispatched', finished_at = now() - interval '1 hour'",
        "VACUUM ANALYZE outbox",
        "CHECKPOINT",
    ] {
        db.execute_unprepared(sql).await.expect("finished rows");
    }
    let sink = Arc::new(Sink::of(Command::Latency(load)));
    let dispatched = if case == Case::Deleted { None } else { Retention::default().dispatched };
    let relay = tokio::spawn({
        let (db, sink) = (db.clone(), sink.clone());
        let retention = Retention { dispatched, ..Retention::default() };
        let config = RelayConfig { name: "bench-purge".to_owned(), retention, ..RelayConfig::default() };
        async move { own::relay(&db, sink, config).await }
    });
    let purged = Arc::new(AtomicU64::new(0));
    let purging = (case == Case::Purged).then(|| tokio::spawn(purge(db.clone(), purged.clone())));
    let times = sink.times().expect("times are taken");
    own::produce(db, load, Saved::Events(1), |number| times.committed(number)).await;
    while !sink.is_done(load.events()) {
        sleep(Duration::from_millis(10)).await;
    }
    relay.abort();
    purging.iter().for_each(tokio::task::JoinHandle::abort);
    (sink, purged.load(Ordering::Relaxed))
}

/// As a relay does it once a minute, but every second.
async fn purge(db: DatabaseConnection, purged: Arc<AtomicU64>) {
    let store = SeaOrmStore::new(db);
    store.check().await.expect("tables");
    let old = Purge { finished: Finished::Dispatched, older_than: AGE, limit: 1_000, now: None };
    loop {
        let rows = store.purge(&old).await.expect("a purge").rows;
        purged.fetch_add(rows, Ordering::Relaxed);
        if rows < u64::from(old.limit) {
            sleep(AGE).await;
        }
    }
}

async fn left(db: &DatabaseConnection) -> i64 {
    let sql = "SELECT count(*) FROM outbox";
    let row = db.query_one_raw(Statement::from_string(DbBackend::Postgres, sql)).await;
    row.expect("an answer").expect("a row").try_get_by_index(0).expect("a count")
}

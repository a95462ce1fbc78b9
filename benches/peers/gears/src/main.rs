//! cf-gears-toolkit-db: partitions with cursors, on the same SeaORM and driver.
#[allow(dead_code, unused_imports)]
#[path = "../../../src/peers/mod.rs"]
mod peers;

use peers::{
    ATTEMPTS, BACKOFF, BATCH, Command, LEASE, POOL, PRODUCERS, Sink, Trouble, command, ready, took,
};
use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use std::{sync::Arc, time::Duration};
use toolkit_db::outbox::{
    self, LeaseConfig, LeasedMessageHandler, MessageResult, Outbox, OutboxError, OutboxHandle,
    OutboxMessage, OutboxProfile, Partitions, Record, Wake, WorkerTuning, outbox_migrations,
};
use toolkit_db::{ConnectOpts, Db, DbError, connect_db, migration_runner::run_migrations_for_testing};

const PARTITIONS: u16 = 4;

struct Note(Arc<Sink>);

#[async_trait::async_trait]
impl LeasedMessageHandler for Note {
    async fn handle(&self, message: &OutboxMessage) -> MessageResult {
        let text = std::str::from_utf8(&message.payload).expect("text");
        let number = text.split(',').next().and_then(|number| number.parse().ok()).expect("a number");
        let pause = self.0.pause(number);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if self.0.handled(number) {
            MessageResult::Ok
        } else if message.attempts + 1 < i16::try_from(ATTEMPTS).expect("a few") {
            MessageResult::Retry
        } else {
            MessageResult::Reject("it always fails".to_owned())
        }
    }
}

/// What is stored is told at once, or only found by a later start.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    AtOnce,
    Never,
}

/// One transaction for so many events. Who drops a wake loses it: its partition waits a minute to be looked at.
async fn publish(
    db: Db,
    outbox: Arc<Outbox>,
    (from, to): (u64, u64),
    (each, told): (u64, Told),
    sink: Option<Arc<Sink>>,
) -> anyhow::Result<()> {
    let other = |error: OutboxError| DbError::Other(anyhow::anyhow!("{error}"));
    let mut next = from;
    while next < to {
        let last = (next + each).min(to);
        let outbox = outbox.clone();
        outbox::in_transaction(&db, |tx| {
            Box::pin(async move {
                let mut wake = Wake::empty();
                for number in next..last {
                    let body = format!("{number},{}", "x".repeat(90)).into_bytes();
                    let partition = u32::try_from(number % u64::from(PARTITIONS)).unwrap_or(0);
                    let record =
                        Record::to("orders", partition).payload(body, "text/plain;orders.placed.v1").build();
                    let record = record.map_err(|e| DbError::Other(anyhow::anyhow!("{e}")))?;
                    wake += outbox.enqueue(tx, record).await.map_err(other)?;
                }
                if told == Told::Never {
                    wake.discard();
                    wake = Wake::empty();
                }
                Ok::<_, DbError>(((), wake))
            })
        })
        .await?;
        sink.iter().filter_map(|sink| sink.times()).for_each(|times| times.committed(next));
        next = last;
    }
    Ok(())
}

/// Its profile for throughput, without the waits between two full batches; in steady traffic that for latency.
async fn start(db: &Db, sink: &Arc<Sink>, command: Command) -> anyhow::Result<OutboxHandle> {
    let (profile, processor) = match command {
        Command::Latency(_) => (OutboxProfile::low_latency(), WorkerTuning::processor_low_latency()),
        _ => (OutboxProfile::high_throughput(), WorkerTuning::processor_high_throughput()),
    };
    let is_killed = matches!(command, Command::Work(_));
    let lease = if is_killed {
        LeaseConfig { duration: LEASE, headroom: Duration::from_secs(1) }
    } else {
        LeaseConfig::default()
    };
    let idle = if is_killed { Duration::from_millis(100) } else { processor.idle_interval };
    let processor = processor
        .batch_size(BATCH)
        .active_interval(Duration::from_millis(1))
        .idle_interval(idle)
        .retry_base(BACKOFF);
    let handle = Outbox::builder(db.clone())
        .profile(profile)
        .processor_tuning(processor)
        .sequencer_tuning(WorkerTuning::sequencer_low_latency().batch_size(2_000))
        .queue("orders", Partitions::of(PARTITIONS))
        .leased(Note(sink.clone()))
        .lease(lease)
        .done()
        .start()
        .await?;
    Ok(handle)
}

/// Stores events while it runs, tells it nothing of them, and stops it: the next start finds them.
async fn backlog(db: &Db, events: u64, command: Command) -> anyhow::Result<()> {
    let handle = start(db, &Arc::new(Sink::of(Command::Drain(0, 1))), command).await?;
    publish(db.clone(), Arc::clone(handle.outbox()), (0, events), (1_000, Told::Never), None).await?;
    handle.stop().await;
    Ok(())
}

async fn until_done(sink: &Sink, events: u64) {
    while !sink.is_done(events) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn dead_letters() -> anyhow::Result<u64> {
    let db = Database::connect(std::env::var("DATABASE_URL")?).await?;
    let count = "SELECT count(*) FROM toolkit_outbox_dead_letters";
    let row = db.query_one_raw(Statement::from_string(DbBackend::Postgres, count)).await?;
    Ok(u64::try_from(row.expect("a row").try_get_by_index::<i64>(0)?)?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = ConnectOpts { max_conns: Some(POOL), ..Default::default() };
    let db = connect_db(&std::env::var("DATABASE_URL")?, options).await?;
    run_migrations_for_testing(&db, outbox_migrations()).await?;
    let command = command(&std::env::args().skip(1).collect::<Vec<_>>());
    let sink = Arc::new(Sink::of(command));
    let events = command.events();
    match command {
        Command::Fill(_) => backlog(&db, events, command).await?,
        Command::Work(_) => {
            ready();
            let _handle = start(&db, &sink, command).await?;
            std::future::pending::<()>().await;
        }
        Command::Drain(..) | Command::Order(..) => {
            backlog(&db, events, command).await?;
            let started = ready();
            let _handle = start(&db, &sink, command).await?;
            until_done(&sink, events).await;
            sink.tell(command, started, 0);
        }
        Command::Enqueue(_) => {
            let handle = start(&db, &sink, command).await?;
            let share = events / PRODUCERS;
            let started = ready();
            let one = |p| {
                let (db, outbox) = (db.clone(), Arc::clone(handle.outbox()));
                tokio::spawn(publish(db, outbox, (p * share, (p + 1) * share), (1, Told::AtOnce), None))
            };
            for producer in (0..PRODUCERS).map(one).collect::<Vec<_>>() {
                producer.await??;
            }
            took(events, started);
        }
        Command::Latency(load) => {
            let handle = start(&db, &sink, command).await?;
            let started = ready();
            let mut tick = tokio::time::interval(load.pause());
            for n in 0..events {
                tick.tick().await;
                let outbox = Arc::clone(handle.outbox());
                publish(db.clone(), outbox, (n, n + 1), (1, Told::AtOnce), Some(sink.clone())).await?;
            }
            until_done(&sink, events).await;
            if load.trouble == Trouble::Fails {
                tokio::time::sleep(BACKOFF * 2_u32.pow(ATTEMPTS)).await;
            }
            sink.tell(command, started, dead_letters().await?);
        }
    }
    std::process::exit(0);
}

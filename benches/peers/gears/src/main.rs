//! cf-gears-toolkit-db: partitions with cursors, on the same SeaORM and driver.
#[path = "../../common.rs"]
mod common;

use common::{Command, POOL, PRODUCERS, Times, command, pause, ready, took};
use std::{sync::Arc, time::Duration};
use toolkit_db::outbox::{
    self, LeasedMessageHandler, MessageResult, Outbox, OutboxMessage, OutboxProfile, Partitions, Record,
    outbox_migrations,
};
use toolkit_db::{ConnectOpts, Db, DbError, connect_db, migration_runner::run_migrations_for_testing};

const PARTITIONS: u16 = 4;

struct Note(Arc<Times>);

#[async_trait::async_trait]
impl LeasedMessageHandler for Note {
    async fn handle(&self, message: &OutboxMessage) -> MessageResult {
        let number =
            std::str::from_utf8(&message.payload).ok().and_then(|text| text.split(',').next()?.parse().ok());
        number.into_iter().for_each(|number| self.0.handled(number));
        MessageResult::Ok
    }
}

async fn publish(
    db: Db,
    outbox: Arc<Outbox>,
    (from, to): (u64, u64),
    each: u64,
    times: Option<Arc<Times>>,
) -> anyhow::Result<()> {
    let mut next = from;
    while next < to {
        let last = (next + each).min(to);
        let outbox = outbox.clone();
        outbox::in_transaction(&db, |tx| {
            Box::pin(async move {
                let mut wake = None;
                for number in next..last {
                    let body = format!("{number},{}", "x".repeat(90)).into_bytes();
                    let partition = u32::try_from(number % u64::from(PARTITIONS)).unwrap_or(0);
                    let record =
                        Record::to("orders", partition).payload(body, "text/plain;orders.placed.v1").build();
                    let record = record.map_err(|e| DbError::Other(anyhow::anyhow!("{e}")))?;
                    wake = Some(
                        outbox
                            .enqueue(tx, record)
                            .await
                            .map_err(|e| DbError::Other(anyhow::anyhow!("{e}")))?,
                    );
                }
                Ok::<_, DbError>(((), wake.expect("an event")))
            })
        })
        .await?;
        times.iter().for_each(|times| times.committed(next));
        next = last;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = ConnectOpts { max_conns: Some(POOL), ..Default::default() };
    let db = connect_db(&std::env::var("DATABASE_URL")?, options).await?;
    run_migrations_for_testing(&db, outbox_migrations()).await?;
    let command = command();
    let events = match command {
        Command::Enqueue(n) | Command::Drain(n, _) => n,
        Command::Latency(rate, seconds) => rate * seconds,
    };
    let times = Arc::new(Times::new(events));
    let handle = Outbox::builder(db.clone())
        .profile(OutboxProfile::high_throughput())
        .queue("orders", Partitions::of(PARTITIONS))
        .leased(Note(times.clone()))
        .done()
        .start()
        .await?;
    let outbox = || Arc::clone(handle.outbox());
    let produce = |each: u64| {
        let share = events / PRODUCERS;
        let one = |p| tokio::spawn(publish(db.clone(), outbox(), (p * share, (p + 1) * share), each, None));
        (0..PRODUCERS).map(one).collect::<Vec<_>>()
    };
    let started = ready();
    match command {
        Command::Latency(rate, _) => {
            let mut tick = tokio::time::interval(pause(rate));
            for n in 0..events {
                tick.tick().await;
                publish(db.clone(), outbox(), (n, n + 1), 1, Some(times.clone())).await?;
            }
        }
        // It handles from the start on, so draining includes producing, many events a transaction.
        Command::Drain(..) => {
            for producer in produce(1_000) {
                producer.await??;
            }
        }
        Command::Enqueue(_) => {
            for producer in produce(1) {
                producer.await??;
            }
            took(started);
            handle.stop().await;
            return Ok(());
        }
    }
    while !times.all_handled() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if let Command::Drain(..) = command {
        took(started)
    } else {
        times.tell()
    }
    handle.stop().await;
    Ok(())
}

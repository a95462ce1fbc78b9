//! obix, one commit an event: a log with a cursor for each subscriber.
#[path = "../../common.rs"]
mod common;

use common::{Command, POOL, PRODUCERS, Times, command, pause, ready, took};
use obix::{
    EventCtx, Handled, InsertOrder, MailboxConfig, OutboxEventJobConfig, SingletonSubscriber, Subscription,
    out::Outbox,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::{sync::Arc, time::Duration};

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Event {
    OrderPlaced { order_id: u64, note: String },
}

struct Note(Arc<Times>);

impl SingletonSubscriber<Event> for Note {
    type Batch = ();

    async fn handle_persistent<'inv>(
        &self,
        ctx: EventCtx<'inv>,
        event: &obix::EventDelivery<Event>,
    ) -> Result<Handled<'inv>, Box<dyn std::error::Error + Send + Sync>> {
        let done = ctx.consume().await?.commit();
        if let Some(Event::OrderPlaced { order_id, .. }) = &event.payload {
            self.0.handled(*order_id);
        }
        Ok(done)
    }
}

async fn publish(
    pool: PgPool,
    outbox: Outbox<Event>,
    (from, to): (u64, u64),
    each: u64,
    times: Option<Arc<Times>>,
) -> anyhow::Result<()> {
    let mut next = from;
    while next < to {
        let mut tx = pool.begin().await?;
        for order_id in next..(next + each).min(to) {
            if each == 1 {
                sqlx::query("INSERT INTO obix_orders (cents) VALUES ($1)")
                    .bind(100_i64)
                    .execute(&mut *tx)
                    .await?;
            }
            outbox
                .publish_persisted_in_op(&mut tx, Event::OrderPlaced { order_id, note: "x".repeat(70) })
                .await?;
        }
        tx.commit().await?;
        times.iter().for_each(|times| times.committed(next));
        next += each;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(POOL);
    let pool = options.connect(&std::env::var("DATABASE_URL")?).await?;
    for script in [
        include_str!(concat!(env!("OUT_DIR"), "/job.sql")),
        include_str!(concat!(env!("OUT_DIR"), "/obix.sql")),
    ] {
        sqlx::raw_sql(script).execute(&pool).await?;
    }
    sqlx::query("CREATE TABLE IF NOT EXISTS obix_orders (id bigserial PRIMARY KEY, cents bigint NOT NULL)")
        .execute(&pool)
        .await?;
    let service = job::JobSvcConfig::builder()
        .pool(pool.clone())
        .exec_migrations(false)
        .build()
        .map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let mut jobs = job::Jobs::init(service).await?;
    let outbox = Outbox::<Event>::init(&pool, MailboxConfig::builder().build()).await?;
    let command = command();
    let events = match command {
        Command::Enqueue(n) | Command::Drain(n, _) => n,
        Command::Latency(rate, seconds) => rate * seconds,
    };
    let times = Arc::new(Times::new(events));
    let config = OutboxEventJobConfig::new(job::JobType::new("bench"));
    let _subscription: Subscription<Event, InsertOrder> =
        outbox.register_singleton_subscriber(&mut jobs, config, Note(times.clone())).await?;
    match command {
        Command::Enqueue(n) => {
            let started = ready();
            let each = n / PRODUCERS;
            let all = (0..PRODUCERS).map(|p| {
                tokio::spawn(publish(pool.clone(), outbox.clone(), (p * each, (p + 1) * each), 1, None))
            });
            for producer in all.collect::<Vec<_>>() {
                producer.await??;
            }
            took(started);
        }
        Command::Drain(n, _) => {
            publish(pool.clone(), outbox.clone(), (0, n), 1_000, None).await?;
            let started = ready();
            jobs.start_poll().await?;
            while !times.all_handled() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            took(started);
        }
        Command::Latency(rate, _) => {
            jobs.start_poll().await?;
            ready();
            let mut tick = tokio::time::interval(pause(rate));
            for n in 0..events {
                tick.tick().await;
                publish(pool.clone(), outbox.clone(), (n, n + 1), 1, Some(times.clone())).await?;
            }
            while !times.all_handled() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            times.tell();
        }
    }
    std::process::exit(0);
}

//! obix, one commit an event: a log with a cursor for each subscriber.
#[allow(dead_code, unused_imports)]
#[path = "../../../src/peers/mod.rs"]
mod peers;

use obix::{
    EventCtx, Handled, InsertOrder, MailboxConfig, OutboxEventJobConfig, SingletonSubscriber, Subscription,
    out::Outbox,
};
use peers::{Command, LEASE, POOL, PRODUCERS, Sink, Trouble, cannot, command, ready, took};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::{sync::Arc, time::Duration};

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Event {
    OrderPlaced { order_id: u64, note: String },
}

struct Note(Arc<Sink>);

impl SingletonSubscriber<Event> for Note {
    type Batch = ();

    async fn handle_persistent<'inv>(
        &self,
        ctx: EventCtx<'inv>,
        event: &obix::EventDelivery<Event>,
    ) -> Result<Handled<'inv>, Box<dyn std::error::Error + Send + Sync>> {
        let done = ctx.consume().await?.commit();
        if let Some(Event::OrderPlaced { order_id, .. }) = &event.payload {
            let pause = self.0.pause(*order_id);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
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
    sink: Option<Arc<Sink>>,
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
        sink.iter().filter_map(|sink| sink.times()).for_each(|times| times.committed(next));
        next += each;
    }
    Ok(())
}

/// The tables, unless another process has made them.
async fn tables(pool: &PgPool) -> anyhow::Result<()> {
    let orders = "CREATE TABLE IF NOT EXISTS obix_orders (id bigserial PRIMARY KEY, cents bigint NOT NULL)";
    let known = sqlx::query_scalar::<_, bool>("SELECT to_regclass('obix_orders') IS NOT NULL");
    if known.fetch_one(pool).await? {
        return Ok(());
    }
    for script in [
        include_str!(concat!(env!("OUT_DIR"), "/job.sql")),
        include_str!(concat!(env!("OUT_DIR"), "/obix.sql")),
        orders,
    ] {
        sqlx::raw_sql(script).execute(pool).await?;
    }
    Ok(())
}

async fn until_done(sink: &Sink, events: u64) {
    while !sink.is_done(events) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(POOL);
    let pool = options.connect(&std::env::var("DATABASE_URL")?).await?;
    tables(&pool).await?;
    let command = command(&std::env::args().skip(1).collect::<Vec<_>>());
    let sink = Arc::new(Sink::of(command));
    let mut poller = job::JobPollerConfig::default();
    if let Command::Work(_) = command {
        poller.job_lost_interval = LEASE;
        poller.pending_jobs_check_interval = Duration::from_secs(1);
    }
    let service = job::JobSvcConfig::builder()
        .pool(pool.clone())
        .exec_migrations(false)
        .poller_config(poller)
        .build()
        .map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let mut jobs = job::Jobs::init(service).await?;
    let outbox = Outbox::<Event>::init(&pool, MailboxConfig::builder().build()).await?;
    let config = OutboxEventJobConfig::new(job::JobType::new("bench"));
    let _subscription: Subscription<Event, InsertOrder> =
        outbox.register_singleton_subscriber(&mut jobs, config, Note(sink.clone())).await?;
    let backlog = |n| publish(pool.clone(), outbox.clone(), (0, n), 1_000, None);
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
            took(n, started);
        }
        Command::Fill(n) => backlog(n).await?,
        Command::Work(_) => {
            ready();
            jobs.start_poll().await?;
            std::future::pending::<()>().await;
        }
        Command::Drain(n, _) | Command::Order(n, _) => {
            backlog(n).await?;
            let started = ready();
            jobs.start_poll().await?;
            until_done(&sink, n).await;
            sink.tell(command, started, 0);
        }
        Command::Latency(load) if load.trouble == Trouble::Fails => {
            cannot("an event whose handler always fails holds up its log, there are no dead letters");
        }
        Command::Latency(load) => {
            jobs.start_poll().await?;
            let started = ready();
            let mut tick = tokio::time::interval(load.pause());
            for n in 0..load.events() {
                tick.tick().await;
                publish(pool.clone(), outbox.clone(), (n, n + 1), 1, Some(sink.clone())).await?;
            }
            until_done(&sink, load.events()).await;
            sink.tell(command, started, 0);
        }
    }
    std::process::exit(0);
}

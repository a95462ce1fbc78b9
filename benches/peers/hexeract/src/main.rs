//! hexeract-outbox: row claims, one mark an event.
#[allow(dead_code, unused_imports)]
#[path = "../../../src/peers/mod.rs"]
mod peers;

use hexeract_core::HandlerContext;
use hexeract_outbox::{
    ErasedHandler, Event, Handler, OutboxError, OutboxPublisher, OutboxWorker, OutboxWorkerConfig,
    TypedHandler,
};
use hexeract_outbox_sql::{
    PgOutboxPublisher, PgOutboxStore,
    postgres::{ensure_dead_letter_schema, ensure_schema},
};
use peers::{
    ATTEMPTS, BACKOFF, BATCH, Command, LEASE, POOL, PRODUCERS, Sink, Trouble, command, ready, took,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

#[derive(Serialize, Deserialize)]
struct OrderPlaced {
    order_id: u64,
    note: String,
}

impl Event for OrderPlaced {
    const EVENT_TYPE: &'static str = "orders.placed.v1";
}

struct Note(Arc<Sink>);

impl Handler<OrderPlaced> for Note {
    type Error = OutboxError;

    async fn handle(&self, event: OrderPlaced, _: &HandlerContext) -> Result<(), OutboxError> {
        let pause = self.0.pause(event.order_id);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if self.0.handled(event.order_id) { Ok(()) } else { Err(OutboxError::Database("it always fails".into())) }
    }
}

async fn publish(
    pool: PgPool,
    from: u64,
    to: u64,
    each: u64,
    sink: Option<Arc<Sink>>,
) -> anyhow::Result<()> {
    let publisher = PgOutboxPublisher::new(pool.clone(), "hx_outbox")?;
    let mut next = from;
    while next < to {
        let mut tx = pool.begin().await?;
        for order_id in next..(next + each).min(to) {
            if each == 1 {
                sqlx::query("INSERT INTO hx_orders (cents) VALUES ($1)")
                    .bind(100_i64)
                    .execute(&mut *tx)
                    .await?;
            }
            publisher.publish_in_tx(&mut tx, &OrderPlaced { order_id, note: "x".repeat(70) }).await?;
        }
        tx.commit().await?;
        sink.iter().filter_map(|sink| sink.times()).for_each(|times| times.committed(next));
        next += each;
    }
    Ok(())
}

fn work(pool: &PgPool, workers: usize, sink: &Arc<Sink>) -> anyhow::Result<()> {
    for _ in 0..workers {
        let mut handlers: HashMap<&'static str, Arc<dyn ErasedHandler>> = HashMap::new();
        handlers.insert(OrderPlaced::EVENT_TYPE, Arc::new(TypedHandler::new(Note(sink.clone()))));
        let defaults = OutboxWorkerConfig::default();
        // The lease of a row is that of its batch: one timeout for each row.
        let dispatch_timeout =
            if let Sink::Lines = **sink { LEASE / BATCH } else { defaults.dispatch_timeout };
        let config = OutboxWorkerConfig {
            batch_size: BATCH as usize,
            poll_interval: Duration::from_millis(20),
            min_cycle_delay: Duration::ZERO,
            max_attempts: ATTEMPTS,
            retry_base_delay: BACKOFF,
            dispatch_timeout,
            ..defaults
        };
        let store = PgOutboxStore::new(pool.clone(), "hx_outbox")?.with_dead_letter("hx_outbox_dead_letter")?;
        tokio::spawn(OutboxWorker::new(store, handlers, config).run(CancellationToken::new()));
    }
    Ok(())
}

async fn count(pool: &PgPool, sql: &'static str) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}

async fn backlog(pool: &PgPool, events: u64) -> anyhow::Result<()> {
    publish(pool.clone(), 0, events, 1_000, None).await?;
    sqlx::query("VACUUM ANALYZE hx_outbox").execute(pool).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(POOL);
    let pool = options.connect(&std::env::var("DATABASE_URL")?).await?;
    ensure_schema(&pool, "hx_outbox").await?;
    ensure_dead_letter_schema(&pool, "hx_outbox").await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS hx_orders (id bigserial PRIMARY KEY, cents bigint NOT NULL)")
        .execute(&pool)
        .await?;
    let command = command(&std::env::args().skip(1).collect::<Vec<_>>());
    let sink = Arc::new(Sink::of(command));
    match command {
        Command::Enqueue(n) => {
            let started = ready();
            let each = n / PRODUCERS;
            let all = (0..PRODUCERS)
                .map(|p| tokio::spawn(publish(pool.clone(), p * each, (p + 1) * each, 1, None)));
            for producer in all.collect::<Vec<_>>() {
                producer.await??;
            }
            took(n, started);
        }
        Command::Fill(n) => backlog(&pool, n).await?,
        Command::Work(_) => {
            ready();
            work(&pool, 1, &sink)?;
            std::future::pending::<()>().await;
        }
        Command::Drain(n, workers) | Command::Order(n, workers) => {
            backlog(&pool, n).await?;
            let started = ready();
            work(&pool, workers, &sink)?;
            while count(&pool, "SELECT count(*) FROM hx_outbox WHERE delivered_at IS NULL").await? > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            sink.tell(command, started, 0);
        }
        Command::Latency(load) => {
            work(&pool, 1, &sink)?;
            let started = ready();
            let mut tick = tokio::time::interval(load.pause());
            for n in 0..load.events() {
                tick.tick().await;
                publish(pool.clone(), n, n + 1, 1, Some(sink.clone())).await?;
            }
            while !sink.is_done(load.events()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if load.trouble == Trouble::Fails {
                tokio::time::sleep(BACKOFF * 2_u32.pow(ATTEMPTS)).await;
            }
            let dead = count(&pool, "SELECT count(*) FROM hx_outbox_dead_letter").await?;
            sink.tell(command, started, u64::try_from(dead)?);
        }
    }
    Ok(())
}

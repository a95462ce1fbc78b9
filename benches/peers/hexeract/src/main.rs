//! hexeract-outbox: row claims, one mark an event.
#[path = "../../common.rs"]
mod common;

use common::{BATCH, Command, POOL, PRODUCERS, Times, command, pause, ready, took};
use hexeract_core::HandlerContext;
use hexeract_outbox::{
    ErasedHandler, Event, Handler, OutboxError, OutboxPublisher, OutboxWorker, OutboxWorkerConfig,
    TypedHandler,
};
use hexeract_outbox_sql::{
    PgOutboxPublisher, PgOutboxStore,
    postgres::{ensure_dead_letter_schema, ensure_schema},
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

struct Note(Arc<Times>);

impl Handler<OrderPlaced> for Note {
    type Error = OutboxError;

    async fn handle(&self, event: OrderPlaced, _: &HandlerContext) -> Result<(), OutboxError> {
        self.0.handled(event.order_id);
        Ok(())
    }
}

async fn publish(
    pool: PgPool,
    from: u64,
    to: u64,
    each: u64,
    times: Option<Arc<Times>>,
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
        times.iter().for_each(|times| times.committed(next));
        next += each;
    }
    Ok(())
}

fn work(pool: &PgPool, workers: usize, times: &Arc<Times>, cancel: &CancellationToken) -> anyhow::Result<()> {
    for _ in 0..workers {
        let mut handlers: HashMap<&'static str, Arc<dyn ErasedHandler>> = HashMap::new();
        handlers.insert(OrderPlaced::EVENT_TYPE, Arc::new(TypedHandler::new(Note(times.clone()))));
        let config = OutboxWorkerConfig {
            batch_size: BATCH as usize,
            poll_interval: Duration::from_millis(20),
            min_cycle_delay: Duration::ZERO,
            ..Default::default()
        };
        let worker = OutboxWorker::new(PgOutboxStore::new(pool.clone(), "hx_outbox")?, handlers, config);
        tokio::spawn(worker.run(cancel.clone()));
    }
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
    sqlx::query("TRUNCATE hx_outbox, hx_orders").execute(&pool).await?;
    let cancel = CancellationToken::new();
    match command() {
        Command::Enqueue(n) => {
            let started = ready();
            let each = n / PRODUCERS;
            let all = (0..PRODUCERS)
                .map(|p| tokio::spawn(publish(pool.clone(), p * each, (p + 1) * each, 1, None)));
            for producer in all.collect::<Vec<_>>() {
                producer.await??;
            }
            took(started);
        }
        Command::Drain(n, workers) => {
            publish(pool.clone(), 0, n, 1_000, None).await?;
            sqlx::query("VACUUM ANALYZE hx_outbox").execute(&pool).await?;
            let times = Arc::new(Times::new(n));
            let started = ready();
            work(&pool, workers, &times, &cancel)?;
            let left = "SELECT count(*) FROM hx_outbox WHERE delivered_at IS NULL";
            while sqlx::query_scalar::<_, i64>(left).fetch_one(&pool).await? > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            took(started);
        }
        Command::Latency(rate, seconds) => {
            let times = Arc::new(Times::new(rate * seconds));
            work(&pool, 1, &times, &cancel)?;
            ready();
            let mut tick = tokio::time::interval(pause(rate));
            for n in 0..rate * seconds {
                tick.tick().await;
                publish(pool.clone(), n, n + 1, 1, Some(times.clone())).await?;
            }
            while !times.all_handled() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            times.tell();
        }
    }
    cancel.cancel();
    Ok(())
}

//! The product as a subject of the comparison: a program that is called as those of the peers.

use crate::{
    OrderPlaced,
    peers::{KEYS, Load, Sink},
    raw::rate,
};
use outbox_core::{Envelope, HandlerError, Relay, RelayConfig, Router, wake};
use outbox_seaorm::{Aggregate, EventBuffer, Outbox, SeaOrmStore, TableNames, notify};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DatabaseConnection, Set, TransactionTrait};
use std::sync::Arc;
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

/// Business rows.
pub mod orders {
    #![allow(missing_docs)]
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "bench_orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub cents: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Makes the table of the business rows, unless it is there.
pub async fn create_orders(db: &DatabaseConnection) {
    let sql = "CREATE TABLE IF NOT EXISTS bench_orders (id bigserial PRIMARY KEY, cents bigint NOT NULL)";
    db.execute_unprepared(sql).await.expect("a table");
}

/// An aggregate.
#[derive(Debug, Aggregate)]
#[aggregate(name = "bench-order")]
pub struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

/// What a producer writes.
#[derive(Clone, Copy, Debug)]
pub enum Saved {
    /// An aggregate with so many events.
    Events(u64),
    /// An aggregate with an event that has one of a hundred ordering keys.
    Keyed,
    /// A business row in a transaction, by SeaORM alone.
    RowAlone,
}

async fn save(db: &DatabaseConnection, number: u64, saved: Saved) {
    let row = orders::ActiveModel { cents: Set(100), ..Default::default() };
    match saved {
        Saved::Events(events) => {
            let mut order = Order::new(row);
            for _ in 0..events {
                order.raise(OrderPlaced::numbered(number));
            }
            order.save(db).await.expect("a save");
        }
        Saved::Keyed => {
            let tx = db.begin().await.expect("a transaction");
            row.insert(&tx).await.expect("a row");
            let envelope = Envelope::new(&OrderPlaced::numbered(number)).expect("a small event");
            let envelope = envelope.with_ordering_key(&format!("key-{}", number % KEYS));
            Outbox::default().append_envelopes(&tx, &[envelope]).await.expect("an event");
            tx.commit().await.expect("a commit");
            wake::committed();
        }
        Saved::RowAlone => {
            let tx = db.begin().await.expect("a transaction");
            row.insert(&tx).await.expect("a row");
            tx.commit().await.expect("a commit");
        }
    }
}

/// So many saves by so many producers. Returns saves a second.
pub async fn enqueue(db: &DatabaseConnection, count: u64, producers: u64, saved: Saved) -> f64 {
    let started = std::time::Instant::now();
    let mut running = Vec::new();
    for producer in 0..producers {
        let db = db.clone();
        running.push(tokio::spawn(async move {
            for number in (producer..count).step_by(usize::try_from(producers).unwrap_or(1)) {
                save(&db, number, saved).await;
            }
        }));
    }
    for producer in running {
        producer.await.expect("no panic");
    }
    rate(usize::try_from(count).unwrap_or(usize::MAX), started.elapsed())
}

/// A relay that gives all events to this sink, until the future is dropped.
pub async fn relay(db: &DatabaseConnection, sink: Arc<Sink>, config: RelayConfig) {
    let note = move |event: OrderPlaced| {
        let sink = sink.clone();
        async move {
            let pause = sink.pause(event.order_id);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            if sink.handled(event.order_id) {
                Ok(())
            } else {
                Err(HandlerError::transient("it always fails"))
            }
        }
    };
    let router = Router::builder().on("bench.note", note).build().expect("a router");
    let relay = Relay::new(SeaOrmStore::new(db.clone()), router).with_config(config);
    relay.run(std::future::pending()).await.expect("a relay");
}

/// Saves at a steady rate; each commit is noted by `committed`.
pub async fn produce(db: &DatabaseConnection, load: Load, saved: Saved, committed: impl Fn(u64)) {
    let mut tick = interval(load.pause());
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..load.events() {
        tick.tick().await;
        save(db, number, saved).await;
        committed(number);
    }
}

/// Tells other processes of the commits of this one, in the background.
pub fn tell(db: &DatabaseConnection) -> JoinHandle<()> {
    let db = db.clone();
    tokio::spawn(async move {
        notify::tell(&db, TableNames::new()).await.expect("PostgreSQL");
    })
}

/// Hears what other processes tell, in the background.
pub fn listen(db: &DatabaseConnection) {
    let db = db.clone();
    tokio::spawn(async move { notify::listen(&db, TableNames::new()).await });
}

//! A handler whose effect happens exactly once: it is stored together with the word that the handler is done.
//!
//! ```text
//! cargo run --example transactional_handler -p outbox-examples
//! ```
//!
//! The effect is a change of the database that the outbox is in: a customer's points. Compare `idempotent_consumer.rs`,
//! which does it with the inbox, for messages that come from elsewhere.

#![allow(clippy::print_stdout, reason = "an example tells its story")]
#![allow(
    unreachable_pub,
    reason = "SeaORM's entities are public by convention, and nothing is public in an example"
)]

use outbox_core::{
    Envelope, HandlerError, MessageContext, OutboxEvent, Router, State, Status, handler,
    testing::{FaultPoint, Stored, TestRelay},
};
use outbox_seaorm::{SeaOrmStore, TableNames, Transactions, Tx, append, migrate};
use schemars::JsonSchema;
use sea_orm::{
    ActiveModelTrait, Database, DatabaseConnection, EntityTrait, IntoActiveModel, Set, TransactionTrait,
};
use serde::{Deserialize, Serialize};
use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

mod accounts {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "accounts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i32,
        pub points: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-delivered", version = 1, ordering = none)]
struct OrderDelivered {
    account_id: i32,
    total_cents: i64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "loyalty.points-given", version = 1, ordering = none)]
struct PointsGiven {
    account_id: i32,
    points: i64,
}

/// How often the handler ran.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

/// The transaction begins here and is only lent: it commits once this has returned `Ok`, or not at all.
#[handler(id = "loyalty.give-points-of-delivery")]
async fn give_points(
    event: OrderDelivered,
    tx: &Tx,
    State(runs): State<Runs>,
    cx: &MessageContext,
) -> Result<(), HandlerError> {
    runs.0.fetch_add(1, Relaxed);
    let tx = tx.begin().await?;
    let account = accounts::Entity::find_by_id(event.account_id).one(tx).await?;
    let mut account = account.ok_or_else(|| HandlerError::terminal("no such account"))?.into_active_model();
    let given = event.total_cents / 100;
    account.points = Set(account.points.take().unwrap_or(0) + given);
    account.update(tx).await?;
    // It is stored if and only if the points are, and it names the delivery as its cause.
    append(tx, PointsGiven { account_id: event.account_id, points: given }).await?;
    if cx.attempt() == 1 {
        return Err(HandlerError::transient("something else went wrong"));
    }
    Ok(())
}

async fn points(db: &DatabaseConnection) -> Result<i64, Box<dyn Error>> {
    Ok(accounts::Entity::find_by_id(1).one(db).await?.ok_or("the account is gone")?.points)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    story().await
}

async fn story() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("transactional-handler-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let told = tell(&format!("sqlite://{}?mode=rwc", folder.join("shop.sqlite").display())).await;
    std::fs::remove_dir_all(&folder)?;
    told
}

async fn tell(url: &str) -> Result<(), Box<dyn Error>> {
    let db = Database::connect(url).await?;
    db.get_schema_builder().register(accounts::Entity).apply(&db).await?;
    migrate(&db, TableNames::new()).await?;
    let account = accounts::ActiveModel { id: Set(1), points: Set(0) };
    accounts::Entity::insert(account).exec_without_returning(&db).await?;

    println!("1. An order of 42.00 is delivered.");
    let tx = db.begin().await?;
    let delivered = append(&tx, OrderDelivered { account_id: 1, total_cents: 4_200 }).await?;
    tx.commit().await?;

    // A pool of its own, so that handlers which hold transactions never keep the relay from its work.
    let (runs, transactions) = (Runs::default(), Transactions::new(Database::connect(url).await?));
    let router = Router::builder().state(runs.clone()).state(transactions).discover().ignore::<PointsGiven>();
    // A relay in the hands of a test; yours is `Relay::new(store, router).run(shutdown)`.
    let mut relay = TestRelay::new(SeaOrmStore::new(db.clone()), router.build()?);

    println!("2. The handler fails after it has given the points. They are taken back.");
    relay.pass().await;
    assert_eq!((runs.0.load(Relaxed), points(&db).await?), (1, 0));
    println!("   ran 1 time    0 points");

    println!("3. It succeeds, and the relay dies before it knows.");
    relay.crash_at(FaultPoint::AfterHandler);
    let drained = relay.drain().await;
    drained.assert_all_dispatched();
    assert_eq!((drained.crashes, runs.0.load(Relaxed), points(&db).await?), (1, 2, 42));
    println!("   ran 2 times   42 points; the next relay knew that the handler was done");

    println!("4. What it raised is stored once, and names its cause.");
    let stored = Stored::of(relay.store()).await;
    stored.assert_all(Status::Dispatched);
    let given = stored.one::<PointsGiven>();
    let Envelope { causation_id, .. } = given.row.envelope;
    assert_eq!((given.event.account_id, given.event.points, causation_id), (1, 42, Some(delivered)));
    println!("   one event     of {} points", given.event.points);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_story_holds() {
        super::story().await.unwrap();
    }
}

//! Delivery is at least once, and the effect happens once: a handler gives points to a customer, fails after the points
//! are stored, is tried again, and finds in the inbox that there is nothing left to do.
//!
//! ```text
//! cargo run --example idempotent_consumer -p outbox-examples
//! ```
//!
//! The inbox is for effects in this database. Another system takes `cx.message_id()` as its idempotency key.

#![allow(clippy::print_stdout, reason = "an example tells its story")]
#![allow(
    unreachable_pub,
    reason = "SeaORM's entities are public by convention, and nothing is public in an example"
)]

use outbox_core::{
    HandlerError, MessageContext, MessageId, OutboxEvent, OutboxStore, Relay, RelayConfig, RetryPolicy,
    Router, State, Status, handler,
};
use outbox_seaorm::{Inbox, InboxPurge, Once, SaveError, SeaOrmStore, TableNames, append, migrate};
use schemars::JsonSchema;
use sea_orm::{
    ActiveModelTrait, Database, DatabaseConnection, DbErr, EntityTrait, IntoActiveModel, Set,
    TransactionTrait,
};
use serde::{Deserialize, Serialize};
use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

mod customers {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "customers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i32,
        pub points: i32,
        pub mails: i32,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-paid", version = 1, ordering = none)]
struct OrderPaid {
    customer_id: i32,
    total_cents: i32,
}

// ---- handlers: two consumers of one event. Each has a name of its own in the inbox, and so a memory of its own

#[handler(id = "loyalty.give-points")]
async fn give_points(
    event: OrderPaid,
    State(shop): State<Shop>,
    cx: &MessageContext,
) -> Result<(), HandlerError> {
    // The effect and the record "loyalty has handled this message" are one transaction.
    let given = Inbox::default()
        .once_in(&shop.db, "loyalty", cx.message_id(), async |tx| {
            let customer = customers::Entity::find_by_id(event.customer_id).one(tx).await?;
            let mut customer = customer.ok_or(DbErr::RecordNotFound("customer".into()))?.into_active_model();
            let points = customer.points.take().unwrap_or(0) + event.total_cents / 100;
            customer.points = Set(points);
            customer.update(tx).await?;
            Ok::<_, SaveError>(points)
        })
        .await?;
    match given {
        Once::Done(points) => println!("   attempt {}    points given, {points} now", cx.attempt()),
        Once::Duplicate => {
            println!("   attempt {}    a duplicate: the points were given before", cx.attempt());
        }
    }
    if shop.is_cut_off.swap(false, Relaxed) {
        println!("   cut off      before the relay knew; it will try again");
        return Err(HandlerError::transient("the process was stopped"));
    }
    shop.ended.send(cx.message_id()).await?;
    Ok(())
}

#[handler(id = "mail.count")]
async fn count_mail(
    event: OrderPaid,
    State(shop): State<Shop>,
    cx: &MessageContext,
) -> Result<(), HandlerError> {
    let counted = Inbox::default().once_in(&shop.db, "mail", cx.message_id(), async |tx| {
        let customer = customers::Entity::find_by_id(event.customer_id).one(tx).await?;
        let mut customer = customer.ok_or(DbErr::RecordNotFound("customer".into()))?.into_active_model();
        customer.mails = Set(customer.mails.take().unwrap_or(0) + 1);
        customer.update(tx).await
    });
    // A duplicate is no error: there is nothing to do, and the message is handled.
    if counted.await?.is_duplicate() {
        println!("   attempt {}    mail counted before", cx.attempt());
    }
    Ok(())
}

#[derive(Clone)]
struct Shop {
    db: DatabaseConnection,
    /// The next handling of a message ends after its effect and before the relay hears of it.
    is_cut_off: Arc<AtomicBool>,
    ended: mpsc::Sender<MessageId>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    story().await
}

async fn story() -> Result<(), Box<dyn Error>> {
    let db = Database::connect("sqlite::memory:").await?;
    db.get_schema_builder().register(customers::Entity).apply(&db).await?;
    migrate(&db, TableNames::new()).await?;
    let customer = customers::ActiveModel { id: Set(1), points: Set(0), mails: Set(0) };
    customers::Entity::insert(customer).exec_without_returning(&db).await?;

    println!("1. An order of 42.00 is paid.");
    let tx = db.begin().await?;
    append(&tx, OrderPaid { customer_id: 1, total_cents: 4_200 }).await?;
    tx.commit().await?;

    println!("2. The handler gives points, and is cut off before the relay knows. It runs again.");
    let (ended, mut handled) = mpsc::channel(8);
    let is_cut_off = Arc::new(AtomicBool::new(true));
    let shop = Shop { db: db.clone(), is_cut_off, ended };
    let router = Router::builder().state(shop).discover().build()?;
    let retry = RetryPolicy { base: Duration::from_millis(100), ..RetryPolicy::default() };
    let config = RelayConfig { retry, ..RelayConfig::default() };
    let relay = Relay::new(SeaOrmStore::new(db.clone()), router).with_config(config);
    let (stop_relay, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async move { drop(stopped.await) }).await });
    let id = handled.recv().await.ok_or("the relay ended early")?;
    stop_relay.send(()).map_err(|()| "the relay ended early")?;
    running.await??;

    let row = SeaOrmStore::new(db.clone()).find(id).await?.ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts), (Status::Dispatched, 2));
    let customer = customers::Entity::find_by_id(1).one(&db).await?.ok_or("the customer is gone")?;
    assert_eq!((customer.points, customer.mails), (42, 1));
    println!(
        "   dispatched   in attempt {}; {} points, {} mail",
        row.attempts, customer.points, customer.mails
    );

    println!("3. An effect that fails leaves no record, so the next copy has its effect.");
    let copy = MessageId::new();
    let fails = async |_: &_| Err::<(), _>(DbErr::Custom("the shop is closed".into()));
    assert!(Inbox::default().once_in(&db, "loyalty", copy, fails).await.is_err());
    let works = async |_: &_| Ok::<_, DbErr>(());
    assert_eq!(Inbox::default().once_in(&db, "loyalty", copy, works).await?, Once::Done(()));
    assert_eq!(Inbox::default().once_in(&db, "loyalty", copy, works).await?, Once::Duplicate);
    println!("   failed, done, and then a duplicate");

    println!("4. Records are kept for longer than a message can come again, and then purged.");
    let month = InboxPurge { older_than: Duration::from_hours(30 * 24), limit: 1_000, now: None };
    assert_eq!(Inbox::default().purge(&db, &month).await?, 0);
    println!("   nothing is that old yet");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_story_holds() {
        super::story().await.unwrap();
    }
}

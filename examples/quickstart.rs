//! The whole path of an event in one file: an order is saved together with its event, and a relay takes the event to
//! the code that sends the mail. Run it; it needs nothing but itself:
//!
//! ```text
//! cargo run --example quickstart -p outbox-examples
//! ```
//!
//! To grow it: add an event under *event*, raise it in a method under *aggregate*, handle it under *handler*.

#![allow(clippy::print_stdout, reason = "an example tells its story")]
#![allow(
    unreachable_pub,
    reason = "SeaORM's entities are public by convention, and nothing is public in an example"
)]

use outbox_core::{
    HandlerError, MessageContext, MessageId, OutboxEvent, OutboxStore, Relay, RelayConfig, RetryPolicy,
    Router, State, Status, handler,
};
use outbox_seaorm::{Aggregate, EventBuffer, SeaOrmStore, TableNames, migrate};
use schemars::JsonSchema;
use sea_orm::{
    ConnectionTrait, Database, DatabaseConnection, DbErr, EntityTrait, PaginatorTrait, Set, Statement,
    TransactionTrait,
};
use serde::{Deserialize, Serialize};
use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

// ---- entity: an ordinary SeaORM entity; the outbox asks nothing of it

mod orders {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub item: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

// ---- event: a fact in the past tense. Rows are stored under `name` and `version`, so the Rust type may be renamed

#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlaced {
    order_id: i32,
    item: String,
}

// ---- aggregate: the root that SeaORM saves, and the events that it has raised. One save writes both, or neither

#[derive(Debug, Aggregate)]
#[aggregate(name = "order")]
struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

impl Order {
    fn place(item: &str) -> Self {
        let mut order = Self::new(orders::ActiveModel { item: Set(item.into()), ..Default::default() });
        // The closure runs inside the save's transaction, where the database has generated the id.
        order.raise_with(|saved| OrderPlaced { order_id: saved.id, item: saved.item.clone() });
        order
    }
}

// ---- handler: does the outside work. Any error means "try again later". The message id is the same at every try, so a
//      receiver that remembers it can tell a repetition

#[handler(id = "mail.confirm-order")]
async fn confirm(
    event: OrderPlaced,
    State(mailer): State<Mailer>,
    cx: &MessageContext,
) -> Result<(), HandlerError> {
    println!("   claimed      {}, attempt {}", cx.event_type(), cx.attempt());
    let text = format!("Thank you for order {}: one {}.", event.order_id, event.item);
    mailer.send(Mail { message_id: cx.message_id(), text }).await?;
    Ok(())
}

/// Stands for a mail server, and can be away for one mail.
#[derive(Clone)]
struct Mailer {
    sent: mpsc::Sender<Mail>,
    is_away: Arc<AtomicBool>,
}

struct Mail {
    message_id: MessageId,
    text: String,
}

impl Mailer {
    async fn send(&self, mail: Mail) -> io::Result<()> {
        if self.is_away.swap(false, Relaxed) {
            println!("   failed       the mail server is away, so the relay tries again");
            return Err(io::Error::other("the mail server is away"));
        }
        println!("   sent         {:?}", mail.text);
        self.sent.send(mail).await.map_err(|_| io::Error::other("nobody reads mail any more"))
    }
}

// ---- main: the story

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    story().await
}

async fn story() -> Result<(), Box<dyn Error>> {
    // In memory, so there is nothing to install and nothing left behind. The rest is the same on PostgreSQL and MySQL.
    let db = Database::connect("sqlite::memory:").await?;
    db.get_schema_builder().register(orders::Entity).apply(&db).await?;
    migrate(&db, TableNames::new()).await?;

    println!("1. An order and its event are saved in one transaction.");
    let mut order = Order::place("book");
    order.save(&db).await?;
    println!("   saved        the order, and its event as the last statement");
    println!("   committed    {}", stored(&db).await?);
    assert_eq!(stored(&db).await?, "orders: 1, outbox rows: 1");

    println!("2. An order whose transaction rolls back leaves neither order nor event.");
    let tx = db.begin().await?;
    Order::place("piano").save(&tx).await?;
    println!("   saved        another order, inside a transaction of ours");
    tx.rollback().await?;
    println!("   rolled back  {}", stored(&db).await?);
    assert_eq!(stored(&db).await?, "orders: 1, outbox rows: 1");

    println!("3. A relay takes committed events to their handlers.");
    let (sent, mut outgoing) = mpsc::channel(8);
    let is_away = Arc::new(AtomicBool::new(false));
    let mailer = Mailer { sent, is_away: is_away.clone() };
    // Everything that is wrong with the handlers is said here, before anything runs.
    let router = Router::builder().state(mailer).discover().expect(["mail.confirm-order"]).build()?;
    let retry = RetryPolicy { base: Duration::from_millis(200), ..RetryPolicy::default() };
    let config = RelayConfig { retry, ..RelayConfig::default() };
    let relay = Relay::new(SeaOrmStore::new(db.clone()), router).with_config(config);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async move { drop(stopped.await) }).await });
    let book = outgoing.recv().await.ok_or("the relay ended early")?;
    assert_eq!(book.text, "Thank you for order 1: one book.");

    println!("4. A handler that fails is tried again.");
    is_away.store(true, Relaxed);
    println!("   saved        an order while the mail server is away");
    // A save on the pool wakes the relays of its own process once it has committed; nobody waits for a poll.
    Order::place("lamp").save(&db).await?;
    let lamp = outgoing.recv().await.ok_or("the relay ended early")?;
    assert_eq!(lamp.text, "Thank you for order 2: one lamp.");
    assert_eq!(stored(&db).await?, "orders: 2, outbox rows: 2");

    println!("5. The relay stops: running handlers end, and what is known is written.");
    stop.send(()).map_err(|()| "the relay ended early")?;
    running.await??;
    assert_dispatched(&db, &book, 1).await?;
    assert_dispatched(&db, &lamp, 2).await?;
    assert!(outgoing.try_recv().is_err(), "no mail was sent twice, and none for the piano");

    println!("Two orders were committed and two mails sent; the order that was rolled back sent none.");
    Ok(())
}

/// What the database holds.
async fn stored(db: &DatabaseConnection) -> Result<String, DbErr> {
    let orders = orders::Entity::find().count(db).await?;
    let sql = "SELECT COUNT(*) AS n FROM outbox";
    let row = db.query_one_raw(Statement::from_string(db.get_database_backend(), sql)).await?;
    let rows: i64 = row.map_or(Ok(0), |row| row.try_get("", "n"))?;
    Ok(format!("orders: {orders}, outbox rows: {rows}"))
}

/// A dispatched row stays for a while, because people look.
async fn assert_dispatched(
    db: &DatabaseConnection,
    mail: &Mail,
    attempts: u32,
) -> Result<(), Box<dyn Error>> {
    let row = SeaOrmStore::new(db.clone()).find(mail.message_id).await?.ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts), (Status::Dispatched, attempts));
    println!("   dispatched   {} in attempt {attempts}", row.envelope.logical_name());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_story_holds() {
        super::story().await.unwrap();
    }
}

//! How an application tests its aggregates and its handlers.
//!
//! ```text
//! cargo test --example testing -p outbox-examples
//! cargo run --example testing -p outbox-examples
//! ```
//!
//! The first half is the application; the second half are its tests, which `main` runs as well.

#![allow(clippy::print_stdout, reason = "an example tells its story")]
#![allow(
    unreachable_pub,
    reason = "SeaORM's entities are public by convention, and nothing is public in an example"
)]

use outbox_core::{
    Envelope, HandlerError, MessageContext, OutboxEvent, Router, State, Status, handler,
    testing::{FaultPoint, MemoryStore, Stored, TestRelay},
};
use outbox_seaorm::{Aggregate, EventBuffer, SeaOrmStore, TableNames, migrate, testing::raised};
use schemars::JsonSchema;
use sea_orm::{Database, Set};
use serde::{Deserialize, Serialize};
use std::{error::Error, sync::Arc};
use tokio::sync::Mutex;

mod tickets {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "tickets")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub seat: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "hall.ticket-sold", version = 1)]
struct TicketSold {
    ticket_id: i32,
    seat: String,
}

#[derive(Debug, Aggregate)]
#[aggregate(name = "ticket")]
struct Ticket {
    #[aggregate(root)]
    root: tickets::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<tickets::Model>,
}

impl Ticket {
    fn sell(seat: &str) -> Self {
        let mut ticket = Ticket::new(tickets::ActiveModel { seat: Set(seat.into()), ..Default::default() });
        ticket.raise_with(|saved| TicketSold { ticket_id: saved.id, seat: saved.seat.clone() });
        ticket
    }
}

/// Stands for a mail server that is out of order at first.
#[derive(Clone, Default)]
struct Mails(Arc<Mutex<Vec<String>>>);

#[handler(id = "mail.send-ticket")]
async fn send_ticket(
    event: TicketSold,
    State(mails): State<Mails>,
    cx: &MessageContext,
) -> Result<(), HandlerError> {
    if cx.attempt() < 3 {
        return Err(HandlerError::transient("the mail server does not answer"));
    }
    mails.0.lock().await.push(format!("seat {}", event.seat));
    Ok(())
}

fn router(mails: &Mails) -> Result<Router, Box<dyn Error>> {
    Ok(Router::builder().state(mails.clone()).discover().build()?)
}

/// An aggregate alone: no database, no waiting.
fn a_sold_ticket_raises_its_event() {
    let mut ticket = Ticket::sell("F7");
    let saved = tickets::Model { id: 1, seat: "F7".into() };
    // Fails with all that was raised when it is not this event, or not alone.
    let sold = raised(&ticket, &saved).only::<TicketSold>();
    assert_eq!(sold, TicketSold { ticket_id: 1, seat: "F7".into() });
    ticket.discard_events();
    println!("aggregate     {} for seat {}", TicketSold::LOGICAL_NAME, sold.seat);
}

/// A handler behind a relay, in memory: two failures with their backoff, without waiting.
async fn a_mail_is_sent_in_the_end() -> Result<(), Box<dyn Error>> {
    let (store, mails) = (MemoryStore::default(), Mails::default());
    let sold = Envelope::new(&TicketSold { ticket_id: 1, seat: "F7".into() })?.with_aggregate("ticket", "1");
    store.append(&[sold])?;
    let mut relay = TestRelay::new(store, router(&mails)?);
    let before = relay.now();
    relay.drain().await.assert_all_dispatched();
    assert_eq!(*mails.0.lock().await, ["seat F7"]);
    assert_eq!(Stored::of(relay.store()).await.one::<TicketSold>().row.attempts, 3);
    assert!((relay.now() - before).num_seconds() >= 1, "two waits have passed on its clock");
    println!("handler       sent in attempt 3, at once");
    Ok(())
}

/// Both together on a database, and a relay that dies at the worst moment: the mail goes twice, so it had better carry the
/// message's id.
async fn a_relay_that_dies_sends_the_mail_again() -> Result<(), Box<dyn Error>> {
    let (db, mails) = (Database::connect("sqlite::memory:").await?, Mails::default());
    db.get_schema_builder().register(tickets::Entity).apply(&db).await?;
    migrate(&db, TableNames::new()).await?;
    Ticket::sell("F8").save(&db).await?;
    let mut relay = TestRelay::new(SeaOrmStore::new(db), router(&mails)?);
    Stored::of(relay.store()).await.assert_all(Status::Pending);
    relay.crash_at(FaultPoint::AfterHandler);
    let drained = relay.drain().await;
    drained.assert_all_dispatched();
    assert_eq!((drained.crashes, mails.0.lock().await.len()), (1, 2));
    println!("crash         two mails of one ticket");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    a_sold_ticket_raises_its_event();
    a_mail_is_sent_in_the_end().await?;
    a_relay_that_dies_sends_the_mail_again().await
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sold_ticket_raises_its_event() {
        super::a_sold_ticket_raises_its_event();
    }

    #[tokio::test]
    async fn a_mail_is_sent_in_the_end() {
        super::a_mail_is_sent_in_the_end().await.unwrap();
    }

    #[tokio::test]
    async fn a_relay_that_dies_sends_the_mail_again() {
        super::a_relay_that_dies_sends_the_mail_again().await.unwrap();
    }
}

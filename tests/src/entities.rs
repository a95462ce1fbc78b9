//! Sample entities and the aggregates on them: integer, UUID, string and composite keys; with children and without.

use crate::events::{NoteTaken, OrderNumbered, OrderPlaced, OrderShipped};
use outbox_seaorm::{Aggregate, EventBuffer};
use sea_orm::{ActiveModelBehavior, DatabaseConnection, DbErr, Set};

/// Orders with lines.
pub mod orders {
    #![allow(missing_docs)]
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        #[sea_orm(unique)]
        pub code: String,
        pub status: String,
        #[sea_orm(has_many)]
        pub lines: HasMany<super::lines::Entity>,
    }
}

/// Lines of an order.
pub mod lines {
    #![allow(missing_docs)]
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "order_lines")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub order_id: i32,
        pub sku: String,
        #[sea_orm(belongs_to, from = "order_id", to = "id")]
        pub order: BelongsTo<super::orders::Entity>,
    }
}

/// Parcels, with a key that the client makes.
pub mod parcels {
    #![allow(missing_docs)]
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "parcels")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub weight: i32,
    }
}

/// Seats, with a composite key of a text and a number.
pub mod seats {
    #![allow(missing_docs)]
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "seats")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false, column_type = "String(StringLen::N(100))")]
        pub hall: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i32,
        pub taken: bool,
    }
}

/// Notes, with a text as key.
pub mod notes {
    #![allow(missing_docs)]
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "notes")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false, column_type = "String(StringLen::N(400))")]
        pub title: String,
        pub body: String,
    }
}

/// Tickets, whose saves are counted.
pub mod tickets {
    #![allow(missing_docs)]
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "tickets")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub state: String,
        #[sea_orm(column_name = "lock_version")]
        pub version: i32,
    }
}

impl ActiveModelBehavior for tickets::ActiveModel {}
impl ActiveModelBehavior for orders::ActiveModel {}
impl ActiveModelBehavior for lines::ActiveModel {}
impl ActiveModelBehavior for parcels::ActiveModel {}
impl ActiveModelBehavior for seats::ActiveModel {}
impl ActiveModelBehavior for notes::ActiveModel {}

/// An order without its lines.
#[derive(Debug, Aggregate)]
#[aggregate(name = "order")]
pub struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

impl Order {
    /// Places an order.
    pub fn place(code: &str) -> Self {
        let root = orders::ActiveModel {
            code: Set(code.into()),
            status: Set("placed".into()),
            ..Default::default()
        };
        let mut order = Self::new(root);
        order.raise_with(|saved| OrderPlaced { order_id: saved.id, total_cents: 100 });
        order
    }

    /// Ships it.
    pub fn ship(&mut self, carrier: &str) {
        self.status = Set("shipped".into());
        self.raise(OrderShipped { carrier: carrier.into() });
    }

    /// Raises an ordered event and changes nothing.
    pub fn number(&mut self, number: u32) {
        self.raise(OrderNumbered { number });
    }

    /// What is known of its last save.
    pub fn last_save(&self) -> &outbox_core::buffer::LastSave {
        self.events.last_save()
    }
}

/// An order with its lines, saved as one.
#[derive(Debug, Aggregate)]
#[aggregate(name = "order")]
pub struct FullOrder {
    #[aggregate(root)]
    root: orders::ActiveModelEx,
    #[aggregate(events)]
    events: EventBuffer<orders::ModelEx>,
}

impl FullOrder {
    /// Places an order with so many lines.
    pub fn place(code: &str, lines: usize) -> Self {
        let mut root = orders::ActiveModel::builder().set_code(code).set_status("placed");
        for line in 0..lines {
            root = root.add_line(lines::ActiveModel::builder().set_sku(format!("sku-{line}")));
        }
        let mut order = Self::new(root);
        let cents = |saved: &orders::ModelEx| i64::try_from(saved.lines.len()).unwrap_or(0) * 100;
        order.raise_with(move |saved| OrderPlaced { order_id: saved.id, total_cents: cents(saved) });
        order
    }

    /// What is known of its last save.
    pub fn last_save(&self) -> &outbox_core::buffer::LastSave {
        self.events.last_save()
    }

    /// Adds a line and raises an ordered event; the root itself does not change.
    pub fn add_line(&mut self, number: u32) {
        self.lines.push(lines::ActiveModel::builder().set_sku(format!("sku-{number}")));
        self.raise(OrderNumbered { number });
    }
}

/// A parcel.
#[derive(Debug, Aggregate)]
#[aggregate(name = "shipping.parcel")]
pub struct Parcel {
    #[aggregate(root)]
    root: parcels::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<parcels::Model>,
    /// A domain field that is not stored.
    pub scanned: Vec<u8>,
}

/// A seat.
#[derive(Debug, Aggregate)]
#[aggregate(name = "seat")]
pub struct Seat {
    #[aggregate(root)]
    root: seats::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<seats::Model>,
}

/// A ticket.
#[derive(Debug, Aggregate)]
#[aggregate(name = "ticket", version = version)]
pub struct Ticket {
    #[aggregate(root)]
    root: tickets::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<tickets::Model>,
}

/// A ticket as SeaORM's extended model.
#[derive(Debug, Aggregate)]
#[aggregate(name = "ticket", version = version)]
pub struct FullTicket {
    #[aggregate(root)]
    root: tickets::ActiveModelEx,
    #[aggregate(events)]
    events: EventBuffer<tickets::ModelEx>,
}

impl Ticket {
    /// Opens a ticket.
    pub fn open() -> Self {
        let mut ticket = Self::new(tickets::ActiveModel { state: Set("open".into()), ..Default::default() });
        ticket.move_to("open");
        ticket
    }

    /// Moves it on.
    pub fn move_to(&mut self, state: &str) {
        self.state = Set(state.into());
        self.raise(NoteTaken { text: state.into() });
    }
}

/// A note.
#[derive(Debug, Aggregate)]
#[aggregate(name = "note")]
pub struct Note {
    #[aggregate(root)]
    root: notes::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<notes::Model>,
}

impl Note {
    /// Takes a note.
    pub fn take(title: &str, body: &str) -> Self {
        let mut note = Self::new(notes::ActiveModel { title: Set(title.into()), body: Set(body.into()) });
        note.raise(NoteTaken { text: body.into() });
        note
    }
}

/// Creates the tables of the entities.
///
/// # Errors
///
/// The database's error.
pub async fn create_tables(db: &DatabaseConnection) -> Result<(), DbErr> {
    db.get_schema_builder()
        .register(orders::Entity)
        .register(lines::Entity)
        .register(parcels::Entity)
        .register(seats::Entity)
        .register(notes::Entity)
        .register(tickets::Entity)
        .apply(db)
        .await
}

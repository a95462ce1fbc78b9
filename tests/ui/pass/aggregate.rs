//! Every shape of aggregate that is fine, in a crate that denies what a user may deny.

#![deny(warnings, missing_docs, unused_qualifications, unreachable_pub, rust_2018_idioms)]
#![forbid(unsafe_code)]

use outbox_core::OutboxEvent;
use outbox_seaorm::{Aggregate, EventBuffer, SaveError, TableNames};
use schemars::JsonSchema;
use sea_orm::{DatabaseConnection, DatabaseTransaction, Set, TransactionTrait};
use serde::{Deserialize, Serialize};

#[allow(missing_docs, unused_qualifications, unreachable_pub)]
mod orders {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub status: String,
        #[sea_orm(has_many)]
        pub lines: HasMany<super::lines::Entity>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[allow(missing_docs, unused_qualifications, unreachable_pub)]
mod lines {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "lines")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub order_id: i32,
        #[sea_orm(belongs_to, from = "order_id", to = "id")]
        pub order: HasOne<super::orders::Entity>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
struct OrderPlaced {
    order_id: i32,
}

const TABLES: TableNames = TableNames::new().prefix("shop_");

/// Over an `ActiveModelEx`, with fields of its own and tables of its own.
#[derive(Debug, Aggregate)]
#[aggregate(name = "order", tables = TABLES)]
pub struct Order {
    /// Fields may stand in any order and have any name.
    #[aggregate(events)]
    raised: EventBuffer<orders::ModelEx>,
    cache: Vec<u8>,
    #[aggregate(root)]
    stored: orders::ActiveModelEx,
}

impl Order {
    fn place() -> Self {
        let mut order = Self::new(orders::ActiveModel::builder().set_status("placed"));
        order.raise_with(|saved| OrderPlaced { order_id: saved.id });
        order.cache.push(1);
        order
    }
}

/// Another name for the library.
mod facade {
    pub(crate) use outbox_seaorm as sea;
}

/// Over an `ActiveModel`, private, and hardly used.
#[derive(Aggregate)]
#[aggregate(name = "shop.order-line", crate = crate::facade::sea)]
struct Line {
    #[aggregate(root)]
    root: lines::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<lines::Model>,
}

async fn store(db: &DatabaseConnection) -> Result<(), SaveError> {
    let mut order = Order::place();
    order.save(db).await?;
    let tx: DatabaseTransaction = db.begin().await?;
    order.status = Set("paid".to_owned());
    order.raise(OrderPlaced { order_id: 1 });
    order.update(&tx).await?;
    order.try_raise(OrderPlaced { order_id: 1 })?;
    order.discard_events();
    order.insert(&tx).await?;
    order.delete(&tx).await?;
    tx.commit().await?;
    let mut line = Line::from(lines::Model { id: 1, order_id: 1 });
    line.save(db).await
}

/// Joins whatever the caller has.
async fn generic<C: TransactionTrait>(db: &C, order: &mut Order) -> Result<(), SaveError> {
    order.save(db).await
}

fn is_send<T: Send>(_: T) {}

fn main() {
    let order = Order::place();
    assert_eq!((order.pending_events(), order.cache.len()), (1, 1));
    assert_eq!(<Order as Aggregate>::AGGREGATE_TYPE, "order");
    assert_eq!(<Line as Aggregate>::TABLES, TableNames::new());
    // Dropped without a save it warns; only its types matter here.
    { order }.discard_events();

    // A save can be spawned.
    let db = DatabaseConnection::default();
    is_send(store(&db));
    is_send(async move { generic(&db, &mut Order::place()).await });
}

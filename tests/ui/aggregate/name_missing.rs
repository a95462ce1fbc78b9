#![allow(unused)]

use outbox_seaorm::{Aggregate, EventBuffer};

mod orders {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub status: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[derive(Aggregate)]
struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

#[derive(Aggregate)]
#[aggregate(crate = outbox_seaorm)]
struct PaidOrder {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

async fn save(db: &sea_orm::DatabaseConnection, order: orders::Model) {
    // The aggregate can be used all the same: no error here.
    let _ = Order::from(order).save(db).await;
}

fn main() {}

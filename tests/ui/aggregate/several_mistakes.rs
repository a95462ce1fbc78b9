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
#[aggregate(nam = "Order", tables = "shop_", retries = 3)]
struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(root, events)]
    other: orders::ActiveModel,
    #[aggregate(events)]
    events: Vec<orders::Model>,
    #[aggregate(version)]
    version: i32,
}

fn main() {}

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

const TABLES: &str = "shop_";

#[derive(Aggregate)]
#[aggregate(name = "order", tables = TABLES)]
struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

fn main() {}

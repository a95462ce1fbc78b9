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
#[aggregate(nmae = "order", table = TABLES, retries = 3)]
struct Order {
    #[aggregate(rot)]
    root: orders::ActiveModel,
    #[aggregate(event)]
    events: EventBuffer<orders::Model>,
    #[aggregate(version)]
    version: i32,
    #[aggregate]
    cache: Vec<u8>,
}

fn main() {}

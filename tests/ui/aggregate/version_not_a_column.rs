#![allow(unused)]

mod orders {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub name: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

use outbox_seaorm::{Aggregate, EventBuffer};

#[derive(Aggregate)]
#[aggregate(name = "order", version = "version")]
struct Text {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

#[derive(Aggregate)]
#[aggregate(name = "order", version = vresion)]
struct Unknown {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

#[derive(Aggregate)]
#[aggregate(name = "order", version = name)]
struct NoNumber {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

fn main() {}

#![allow(unused)]

use outbox_core::OutboxEvent;
use outbox_seaorm::{Aggregate, EventBuffer, SaveError};
use schemars::JsonSchema;
use sea_orm::{ActiveModelTrait, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel};
use serde::{Deserialize, Serialize};

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

#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1, ordering = none)]
struct OrderPlaced {
    order_id: i32,
}

#[derive(Aggregate)]
#[aggregate(name = "order")]
struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

fn lose<C: ConnectionTrait>(db: &C, order: &mut Order) {
    let save = order.save(db);
}

fn main() {}

use outbox_core::OutboxEvent;
use outbox_seaorm::{OutboxTransaction, SaveError};
use outbox_tests::{database::TestDatabase, for_each_database};
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel, ModelTrait, Set, TransactionTrait};

for_each_database! {
    a_pool_is_refused_before_anything_is_written,
    an_event_of_a_hook_shares_the_end_of_its_transaction,
    a_cascading_save_on_a_pool_brings_its_own_transaction,
}

/// Products that raise their events from SeaORM's own hooks.
mod products {
    use outbox_core::OutboxEvent;
    use outbox_seaorm::hooks;
    use schemars::JsonSchema;
    use sea_orm::entity::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "catalog.product-listed", version = 1, ordering = none)]
    pub(super) struct ProductListed {
        id: i32,
    }

    #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "catalog.product-withdrawn", version = 1, ordering = none)]
    pub(super) struct ProductWithdrawn {
        id: i32,
    }

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "products")]
    pub(super) struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub name: String,
    }

    #[async_trait::async_trait]
    impl ActiveModelBehavior for ActiveModel {
        async fn before_save<C: ConnectionTrait>(self, db: &C, _: bool) -> Result<Self, DbErr> {
            hooks::require_transaction(db, "product")?;
            Ok(self)
        }

        async fn after_save<C: ConnectionTrait>(model: Model, db: &C, insert: bool) -> Result<Model, DbErr> {
            if insert {
                hooks::raise(db, "product", model.id, &ProductListed { id: model.id }).await?;
            }
            Ok(model)
        }

        async fn before_delete<C: ConnectionTrait>(self, db: &C) -> Result<Self, DbErr> {
            let id = self.id.clone().unwrap();
            hooks::raise(db, "product", id, &ProductWithdrawn { id }).await?;
            Ok(self)
        }
    }
}

fn product(name: &str) -> products::ActiveModel {
    products::ActiveModel { name: Set(name.into()), ..Default::default() }
}

async fn create_table(database: &TestDatabase) {
    database.db.get_schema_builder().register(products::Entity).apply(&database.db).await.unwrap();
}

async fn counts(database: &TestDatabase) -> (i64, i64) {
    (database.count("products").await, database.count("outbox").await)
}

async fn a_pool_is_refused_before_anything_is_written(database: &TestDatabase) {
    create_table(database).await;
    let error = product("lamp").insert(&database.db).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("product raises events") && text.contains("begin one and pass it"), "{text}");
    let model =
        products::Entity::insert(product("no hook runs")).exec_with_returning(&database.db).await.unwrap();
    assert!(model.clone().delete(&database.db).await.is_err());
    let mut changed = model.into_active_model();
    changed.name = Set("changed".into());
    assert!(changed.update(&database.db).await.is_err());
    assert_eq!(counts(database).await, (1, 0));
}

async fn an_event_of_a_hook_shares_the_end_of_its_transaction(database: &TestDatabase) {
    create_table(database).await;
    let tx = database.db.begin().await.unwrap();
    product("undone").insert(&tx).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(counts(database).await, (0, 0));
    let tx = database.db.begin().await.unwrap();
    let lamp = product("lamp").insert(&tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(counts(database).await, (1, 1));
    let id = lamp.id;
    OutboxTransaction::run(&database.db, async |tx| {
        lamp.delete(tx).await?;
        Ok::<_, SaveError>(())
    })
    .await
    .unwrap();
    assert_eq!(counts(database).await, (0, 2));
    let withdrawn = products::ProductWithdrawn::EVENT_TYPE;
    let of_the_lamp = format!("aggregate_type = 'product' AND aggregate_id = '{id}'");
    assert_eq!(
        database.count(&format!("outbox WHERE event_type = '{withdrawn}' AND {of_the_lamp}")).await,
        1
    );
}

async fn a_cascading_save_on_a_pool_brings_its_own_transaction(database: &TestDatabase) {
    create_table(database).await;
    products::ActiveModel::builder().set_name("lamp").insert(&database.db).await.unwrap();
    assert_eq!(counts(database).await, (1, 1));
}

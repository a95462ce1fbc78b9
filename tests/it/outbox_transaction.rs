use outbox_core::{HandlerError, Relay, RelayConfig, Router, buffer::LastSave, fate::End};
use outbox_seaorm::{OutboxTransaction, SaveError, SeaOrmStore, append};
use outbox_tests::{
    database::TestDatabase,
    entities::{FullOrder, Note, Order, orders},
    events::OrderPlaced,
    for_each_database,
    statements::Statements,
    wait::{polls, until},
};
use sea_orm::{
    ActiveModelTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait, Set, StreamTrait,
    TransactionError, TransactionTrait,
};
use std::time::Duration;
use tokio::sync::oneshot;

for_each_database! {
    several_aggregates_share_one_transaction,
    a_closure_that_fails_undoes_everything,
    every_way_not_to_commit_is_told_to_the_aggregates,
    an_aggregate_without_events_is_told_as_well,
    a_commit_clears_the_doubt_without_a_look,
    what_a_savepoint_saved_shares_its_end,
    it_is_a_connection_like_any_other,
    it_can_be_moved_to_another_task,
    a_save_that_is_dropped_half_way_cannot_be_overlooked,
    a_commit_wakes_the_relay,
}

async fn counts(database: &TestDatabase) -> (i64, i64) {
    (database.count("orders").await, database.count("outbox").await)
}

/// An order that is stored, loaded anew.
async fn loaded(database: &TestDatabase, code: &str) -> Order {
    let root =
        orders::ActiveModel { code: Set(code.into()), status: Set("old".into()), ..Default::default() };
    Order::from(root.insert(&database.db).await.unwrap())
}

fn end(order: &Order) -> Option<End> {
    match order.last_save() {
        LastSave::Joined { fate, .. } => fate.as_ref().map(outbox_core::fate::Fate::end),
        _ => None,
    }
}

async fn several_aggregates_share_one_transaction(database: &TestDatabase) {
    OutboxTransaction::run(&database.db, async |tx| {
        Order::place("A-1").save(tx).await?;
        FullOrder::place("A-2", 2).save(tx).await?;
        Note::take("title", "body").save(tx).await?;
        append(tx, OrderPlaced { order_id: 9, total_cents: 1 }).await
    })
    .await
    .unwrap();
    assert_eq!((counts(database).await, database.count("notes").await), ((2, 4), 1));
}

async fn a_closure_that_fails_undoes_everything(database: &TestDatabase) {
    let mut order = Order::place("A-1");
    let failed = OutboxTransaction::run(&database.db, async |tx| {
        order.save(tx).await?;
        Err::<(), _>(DbErr::Custom("mine".to_owned()))
    });
    assert_eq!(failed.await, Err(DbErr::Custom("mine".to_owned())));
    assert_eq!((counts(database).await, end(&order)), ((0, 0), Some(End::RolledBack)));
}

async fn every_way_not_to_commit_is_told_to_the_aggregates(database: &TestDatabase) {
    for way in ["rollback", "drop", "savepoint rollback", "savepoint drop", "outer rollback"] {
        let mut order = loaded(database, way).await;
        order.ship("x");
        let tx = OutboxTransaction::begin(&database.db).await.unwrap();
        match way {
            "rollback" => {
                order.save(&tx).await.unwrap();
                tx.rollback().await.unwrap();
            }
            "drop" => {
                order.save(&tx).await.unwrap();
                drop(tx);
            }
            "outer rollback" => {
                let inner = TransactionTrait::begin(&tx).await.unwrap();
                order.save(&inner).await.unwrap();
                inner.commit().await.unwrap();
                assert_eq!(end(&order), Some(End::Open));
                tx.rollback().await.unwrap();
            }
            savepoint => {
                let inner = TransactionTrait::begin(&tx).await.unwrap();
                order.save(&inner).await.unwrap();
                if savepoint.ends_with("drop") {
                    drop(inner);
                } else {
                    inner.rollback().await.unwrap();
                }
                // The outer transaction goes on, and knows already.
                assert!(matches!(order.save(&tx).await, Err(SaveError::RolledBack { .. })));
                tx.commit().await.unwrap();
            }
        }
        let error = order.save(&database.db).await.unwrap_err();
        assert!(matches!(error, SaveError::RolledBack { aggregate_type: "order" }), "{way}: {error}");
        let stored = orders::Entity::find_by_code(way).one(&database.db).await.unwrap().unwrap();
        assert_eq!(stored.status, "old", "{way}");
    }
    assert_eq!(database.count("outbox").await, 0);
}

async fn an_aggregate_without_events_is_told_as_well(database: &TestDatabase) {
    let mut order = loaded(database, "A-1").await;
    order.status = Set("new".into());
    let tx = OutboxTransaction::begin(&database.db).await.unwrap();
    order.save(&tx).await.unwrap();
    tx.rollback().await.unwrap();
    // SeaORM takes the root for stored; saving it again would change nothing, successfully.
    assert!(matches!(order.save(&database.db).await, Err(SaveError::RolledBack { .. })));
}

async fn a_commit_clears_the_doubt_without_a_look(database: &TestDatabase) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let mut order = Order::place("A-1");
    OutboxTransaction::run(&db, async |tx| order.save(tx).await).await.unwrap();
    assert_eq!(end(&order), Some(End::Committed));
    statements.take();
    order.ship("x");
    order.save(&db).await.unwrap();
    let looks = statements.take().iter().filter(|sql| sql.contains("SELECT message_id")).count();
    assert_eq!((looks, counts(database).await), (0, (1, 2)));
}

async fn what_a_savepoint_saved_shares_its_end(database: &TestDatabase) {
    let (mut kept, mut undone) = (Order::place("kept"), Order::place("undone"));
    OutboxTransaction::run(&database.db, async |tx| {
        let inner = TransactionTrait::begin(tx).await?;
        undone.save(&inner).await?;
        inner.rollback().await?;
        let inner = TransactionTrait::begin(tx).await?;
        kept.save(&inner).await?;
        inner.commit().await?;
        Ok::<_, SaveError>(())
    })
    .await
    .unwrap();
    assert_eq!((end(&kept), end(&undone)), (Some(End::Committed), Some(End::RolledBack)));
    assert_eq!(counts(database).await, (1, 1));
}

async fn it_is_a_connection_like_any_other(database: &TestDatabase) {
    let mut order = FullOrder::place("A-1", 1);
    let tx = OutboxTransaction::begin(&database.db).await.unwrap();
    order.save(&tx).await.unwrap();
    let model = orders::Entity::find().one(&tx).await.unwrap().unwrap();
    let mut root = model.into_active_model();
    root.status = Set("by SeaORM itself".into());
    root.update(&tx).await.unwrap();
    // SeaORM's own closures, nested, one of them failing.
    let kept = tx.transaction(|tx| Box::pin(async move { Order::place("kept").save(tx).await }));
    kept.await.unwrap();
    let undone = tx.transaction(|tx| {
        Box::pin(async move {
            Order::place("undone").save(tx).await?;
            Err::<(), _>(SaveError::Database(DbErr::Custom("mine".to_owned())))
        })
    });
    assert!(matches!(undone.await, Err(TransactionError::Transaction(_))));
    drop(
        StreamTrait::stream_raw(&tx, sea_orm::Statement::from_string(tx_backend(database), "SELECT 1"))
            .await
            .unwrap(),
    );
    tx.commit().await.unwrap();
    assert_eq!(counts(database).await, (2, 2));
    let changed = orders::Entity::find_by_code("A-1").one(&database.db).await.unwrap().unwrap();
    assert_eq!(changed.status, "by SeaORM itself");
    assert_eq!(orders::Entity::find().count(&database.db).await.unwrap(), 2);
}

fn tx_backend(database: &TestDatabase) -> sea_orm::DbBackend {
    sea_orm::ConnectionTrait::get_database_backend(&database.db)
}

async fn it_can_be_moved_to_another_task(database: &TestDatabase) {
    let db = database.db.clone();
    let work = tokio::spawn(async move {
        let tx = OutboxTransaction::begin(&db).await?;
        let inner = TransactionTrait::begin(&tx).await?;
        FullOrder::place("A-1", 1).save(&inner).await?;
        inner.commit().await?;
        tokio::spawn(tx.commit()).await.unwrap()?;
        OutboxTransaction::run(&db, async |tx| Order::place("A-2").save(tx).await).await
    });
    work.await.unwrap().unwrap();
    assert_eq!(counts(database).await, (2, 2));
}

async fn a_save_that_is_dropped_half_way_cannot_be_overlooked(database: &TestDatabase) {
    // SeaORM loses count of its savepoints when a begin is dropped: on a plain transaction the first order would be
    // undone, and the commit would say that all is well.
    let tx = OutboxTransaction::begin(&database.db).await.unwrap();
    let (mut first, mut dropped, mut later) =
        (Order::place("first"), Order::place("dropped"), Order::place("later"));
    first.save(&tx).await.unwrap();
    // How far one poll gets is the driver's and the scheduler's affair, so each end of it has to hold together.
    let was_saved = polls(1, dropped.save(&tx)).await.transpose().unwrap().is_some();
    match later.save(&tx).await {
        Ok(()) => {
            tx.commit().await.unwrap();
            let saved = 2 + i64::from(was_saved);
            assert_eq!((end(&first), counts(database).await), (Some(End::Committed), (saved, saved)));
        }
        Err(error) => {
            let refused = tx.commit().await.unwrap_err();
            for error in [error.to_string(), refused.to_string()] {
                assert!(error.contains("was dropped half-way"), "{error}");
            }
            assert_eq!((end(&first), counts(database).await), (Some(End::RolledBack), (0, 0)));
            assert!(matches!(first.save(&database.db).await, Err(SaveError::RolledBack { .. })));
        }
    }
    // What was dropped can be saved again.
    if !was_saved {
        let before = counts(database).await.0;
        dropped.save(&database.db).await.unwrap();
        assert_eq!(counts(database).await, (before + 1, before + 1));
    }
    later.discard_events();
}

async fn a_commit_wakes_the_relay(database: &TestDatabase) {
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let hour = Duration::from_hours(1);
    let config = RelayConfig { poll_min: hour, poll_max: hour, ..RelayConfig::default() };
    let relay = Relay::new(SeaOrmStore::new(database.db.clone()), router).with_config(config);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
    OutboxTransaction::run(&database.db, async |tx| Order::place("A-1").save(tx).await).await.unwrap();
    until("it is dispatched", || async { database.count("outbox WHERE status = 'dispatched'").await == 1 })
        .await;
    drop(stop);
    running.await.unwrap().unwrap();
}

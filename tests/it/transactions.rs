use outbox_core::buffer::LastSave;
use outbox_seaorm::SaveError;
use outbox_tests::{
    database::{Backend, TestDatabase, connect},
    entities::{FullOrder, Order, orders},
    events::OrderShipped,
    for_each_database,
    proxy::Proxy,
    statements::Statements,
};
use sea_orm::{
    ActiveModelTrait, DatabaseConnection, DatabaseExecutor, DatabaseTransaction, EntityTrait,
    IntoActiveModel, Set, TransactionTrait,
};

for_each_database! {
    rows_and_events_share_every_outcome_of_every_write_path,
    what_an_inner_savepoint_raised_goes_with_it,
    the_outer_rollback_takes_what_inner_savepoints_released,
    an_aggregate_whose_transaction_rolled_back_cannot_be_saved_again_unnoticed,
    an_aggregate_saved_twice_in_one_transaction_is_fine,
    a_committed_transaction_clears_the_doubt,
    a_save_whose_commit_answer_was_lost_is_found_to_be_stored,
    a_save_that_never_reached_its_commit_can_simply_be_repeated,
    an_ordered_event_locks_a_root_that_the_save_does_not_write,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Write {
    Insert,
    Update,
    Save,
    Delete,
    EventOnly,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Commit,
    Rollback,
    Drop,
    SavepointRollback,
}

/// Another aggregate for each case, so that none sees the other's rows.
async fn aggregate(db: &DatabaseConnection, write: Write, code: &str) -> Order {
    if matches!(write, Write::Insert) {
        return Order::place(code);
    }
    let root =
        orders::ActiveModel { code: Set(code.into()), status: Set("old".into()), ..Default::default() };
    let mut order = Order::from(root.insert(db).await.unwrap());
    order.raise(OrderShipped { carrier: code.into() });
    if matches!(write, Write::Update | Write::Save) {
        order.status = Set("new".into());
    }
    order
}

/// Every connection that a save takes.
macro_rules! write {
    ($write:expr, $order:expr, $db:expr) => {
        match $write {
            Write::Insert => $order.insert($db).await,
            Write::Update => $order.update($db).await,
            Write::Save | Write::EventOnly => $order.save($db).await,
            Write::Delete => $order.delete($db).await,
        }
    };
}

async fn in_transaction(tx: DatabaseTransaction, write: Write, outcome: Outcome, order: &mut Order) {
    match outcome {
        Outcome::SavepointRollback => {
            let inner = tx.begin().await.unwrap();
            write!(write, order, &inner).unwrap();
            inner.rollback().await.unwrap();
            tx.commit().await.unwrap();
        }
        Outcome::Commit => {
            write!(write, order, &DatabaseExecutor::Transaction(&tx)).unwrap();
            tx.commit().await.unwrap();
        }
        Outcome::Rollback => {
            write!(write, order, &tx).unwrap();
            tx.rollback().await.unwrap();
        }
        Outcome::Drop => {
            write!(write, order, &tx).unwrap();
            drop(tx);
        }
    }
}

async fn rows_and_events_share_every_outcome_of_every_write_path(database: &TestDatabase) {
    let db = &database.db;
    for write in [Write::Insert, Write::Update, Write::Save, Write::Delete, Write::EventOnly] {
        for outcome in [
            None,
            Some(Outcome::Commit),
            Some(Outcome::Rollback),
            Some(Outcome::Drop),
            Some(Outcome::SavepointRollback),
        ] {
            let case = format!("{write:?}-{outcome:?}");
            let mut order = aggregate(db, write, &case).await;
            let before = database.count("outbox").await;
            match outcome {
                None => write!(write, order, db).unwrap(),
                Some(outcome) => in_transaction(db.begin().await.unwrap(), write, outcome, &mut order).await,
            }
            let happened = matches!(outcome, None | Some(Outcome::Commit));
            let events = database.count("outbox").await - before;
            assert_eq!(events, i64::from(happened), "events of {case}");
            let status = orders::Entity::find_by_code(&case).one(db).await.unwrap().map(|order| order.status);
            let expected = match (write, happened) {
                (Write::Insert, true) => Some("placed"),
                (Write::Insert, false) | (Write::Delete, true) => None,
                (Write::Update | Write::Save, true) => Some("new"),
                _ => Some("old"),
            };
            assert_eq!(status.as_deref(), expected, "row of {case}");
        }
    }
}

async fn what_an_inner_savepoint_raised_goes_with_it(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    Order::place("outer").save(&tx).await.unwrap();
    let inner = tx.begin().await.unwrap();
    Order::place("inner").save(&inner).await.unwrap();
    inner.rollback().await.unwrap();
    Order::place("last").save(&tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((database.count("orders").await, database.count("outbox").await), (2, 2));
}

async fn the_outer_rollback_takes_what_inner_savepoints_released(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    let inner = tx.begin().await.unwrap();
    Order::place("inner").save(&inner).await.unwrap();
    inner.commit().await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!((database.count("orders").await, database.count("outbox").await), (0, 0));
}

async fn an_aggregate_whose_transaction_rolled_back_cannot_be_saved_again_unnoticed(database: &TestDatabase) {
    let db = &database.db;
    Order::place("A-1").save(db).await.unwrap();
    let mut order = Order::from(orders::Entity::find().one(db).await.unwrap().unwrap());
    order.ship("DHL");
    let tx = db.begin().await.unwrap();
    order.save(&tx).await.unwrap();
    assert!(matches!(order.last_save(), LastSave::Joined { ids, .. } if ids.len() == 1));
    tx.rollback().await.unwrap();
    // SeaORM by itself would take the root for saved and do nothing, successfully.
    for _ in 0..2 {
        let error = order.save(db).await.unwrap_err();
        assert!(matches!(error, SaveError::RolledBack { aggregate_type: "order", .. }), "{error}");
    }
    assert_eq!(database.count("outbox").await, 1);
    let stored = orders::Entity::find().one(db).await.unwrap().unwrap();
    assert_eq!(stored.status, "placed");
}

async fn an_aggregate_saved_twice_in_one_transaction_is_fine(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    let mut order = Order::place("A-1");
    order.save(&tx).await.unwrap();
    order.ship("DHL");
    order.save(&tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((database.count("orders").await, database.count("outbox").await), (1, 2));
}

async fn a_committed_transaction_clears_the_doubt(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    let mut order = Order::place("A-1");
    order.save(&tx).await.unwrap();
    tx.commit().await.unwrap();
    order.ship("DHL");
    order.save(&database.db).await.unwrap();
    assert!(matches!(order.last_save(), LastSave::Settled));
    assert_eq!(database.count("outbox").await, 2);
}

async fn a_save_whose_commit_answer_was_lost_is_found_to_be_stored(database: &TestDatabase) {
    let mut order = Order::place("A-1");
    if database.backend == Backend::Sqlite {
        // No wire that could break: the caller loses its patience instead, at each step of the save in turn.
        return lose_patience(database, order).await;
    }
    let proxy = Proxy::before(&database.url).await;
    let db = connect(&proxy.url, 1).await;
    proxy.lose_the_next_commits_answer();
    let error = order.save(&db).await.unwrap_err();
    assert!(matches!(error, SaveError::Database(_)), "{error}");
    assert!(matches!(order.last_save(), LastSave::CommitUnknown(ids) if ids.len() == 1));
    // The key is generated, so without the events this would be a second order.
    for _ in 0..2 {
        let error = order.save(&database.db).await.unwrap_err();
        assert!(matches!(error, SaveError::AlreadyStored { aggregate_type: "order", .. }), "{error}");
    }
    assert_eq!((database.count("orders").await, database.count("outbox").await), (1, 1));
}

async fn lose_patience(database: &TestDatabase, mut order: Order) {
    for steps in 1.. {
        let db = database.connect().await;
        let polled = outbox_tests::wait::polls(steps, order.save(&db)).await;
        db.close().await.unwrap();
        let stored = database.count("outbox").await;
        match polled {
            None => assert!(stored == 0 || !matches!(order.last_save(), LastSave::Settled), "{steps} steps"),
            Some(Ok(()) | Err(SaveError::AlreadyStored { .. })) => break,
            Some(Err(error)) => panic!("after {steps} steps: {error}"),
        }
    }
    assert_eq!((database.count("orders").await, database.count("outbox").await), (1, 1));
    order.discard_events();
}

async fn a_save_that_never_reached_its_commit_can_simply_be_repeated(database: &TestDatabase) {
    let mut order = Order::place("A-1");
    let closed = database.connect().await;
    closed.clone().close().await.unwrap();
    assert!(order.save(&closed).await.is_err());
    assert_eq!(order.pending_events(), 1);
    order.save(&database.db).await.unwrap();
    assert_eq!((database.count("orders").await, database.count("outbox").await), (1, 1));
}

async fn an_ordered_event_locks_a_root_that_the_save_does_not_write(database: &TestDatabase) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let locks = || statements.take().iter().filter(|sql| sql.contains("FOR UPDATE")).count();
    let is_server = usize::from(database.backend.has_concurrent_writers());

    let mut order = FullOrder::place("A-1", 1);
    order.save(&db).await.unwrap();
    assert_eq!(locks(), 0, "an insert locks by itself");
    order.add_line(1);
    order.save(&db).await.unwrap();
    assert_eq!(locks(), is_server, "only a child changed");

    let model = orders::Entity::find().one(&database.db).await.unwrap().unwrap();
    let mut order = Order::from(model.clone());
    order.number(2);
    order.save(&db).await.unwrap();
    assert_eq!(locks(), is_server, "nothing changed");
    order.number(3);
    order.status = Set("changed".into());
    order.save(&db).await.unwrap();
    assert_eq!(locks(), 0, "an update locks by itself");
    order.raise(OrderShipped { carrier: "x".into() });
    order.save(&db).await.unwrap();
    assert_eq!(locks(), 0, "the event keeps no order");

    model.into_active_model().delete(&database.db).await.ok();
}

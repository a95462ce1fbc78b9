use outbox_core::{HandlerError, Relay, Router};
use outbox_seaorm::{SeaOrmStore, Transactions, Tx};
use outbox_tests::{
    database::TestDatabase,
    entities::Order,
    events::{OrderPlaced, placed},
    for_each_database,
    subject::{Sql, Subject},
    wait::polls,
};

for_each_database! {
    a_begin_that_a_handler_drops_half_way_can_be_made_again,
}

async fn a_begin_that_a_handler_drops_half_way_can_be_made_again(database: &TestDatabase) {
    Sql::new(database).append(&[placed(1)]).await;
    let handle = |_: OrderPlaced, tx: Tx| async move {
        for times in 0..4 {
            drop(polls(times, tx.begin()).await);
        }
        Order::place("A-1").save(tx.begin().await?).await?;
        Ok::<(), HandlerError>(())
    };
    let own = Transactions::new(database.connect().await);
    let router = Router::builder().state(own).on("tests.again", handle).build().unwrap();
    let relay = Relay::new(SeaOrmStore::new(database.db.clone()), router);
    // One pass: the order raises the same event.
    let report = relay.pass().await.unwrap();
    assert_eq!((report.dispatched, database.count("orders").await), (1, 1), "{report:?}");
}

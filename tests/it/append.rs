use outbox_core::{EventError, MessageId, Status};
use outbox_seaorm::{Outbox, SaveError, append};
use outbox_tests::{
    database::TestDatabase,
    events::{CustomerMoved, OrderNumbered, OrderPlaced, placed_many},
    for_each_database,
    statements::Statements,
    subject::{Sql, Subject},
};
use sea_orm::TransactionTrait;

for_each_database! {
    an_appended_event_shares_the_fate_of_its_transaction,
    the_same_message_id_twice_is_one_row,
    two_producers_of_one_message_at_the_same_instant_write_one_row,
    an_event_of_an_aggregate_needs_one,
    keys_are_stored_with_their_lanes,
    many_events_are_one_statement,
}

const PLACED: OrderPlaced = OrderPlaced { order_id: 1, total_cents: 2 };

async fn an_appended_event_shares_the_fate_of_its_transaction(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    append(&tx, PLACED).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(database.count("outbox").await, 0);
    let tx = database.db.begin().await.unwrap();
    let id = append(&tx, PLACED).await.unwrap();
    tx.commit().await.unwrap();
    let subject = Sql::new(database);
    let row = outbox_core::OutboxStore::find(subject.store(), id).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.envelope.aggregate_type, row.envelope.ordering_key),
        (Status::Pending, None, None)
    );
}

async fn the_same_message_id_twice_is_one_row(database: &TestDatabase) {
    let id = MessageId::new();
    let tx = database.db.begin().await.unwrap();
    let first = Outbox::default().append_once(&tx, id, PLACED).await.unwrap();
    let second = Outbox::default().append_once(&tx, id, PLACED).await.unwrap();
    assert_eq!((first.is_new, second.is_new, first.row_id), (true, false, second.row_id));
    // The transaction is not spoiled by the second.
    append(&tx, PLACED).await.unwrap();
    tx.commit().await.unwrap();
    let tx = database.db.begin().await.unwrap();
    let third = Outbox::default().append_once(&tx, id, PLACED).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((third.is_new, third.row_id, database.count("outbox").await), (false, first.row_id, 2));
}

async fn two_producers_of_one_message_at_the_same_instant_write_one_row(database: &TestDatabase) {
    let id = MessageId::new();
    let mut producers = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let db = database.db.clone();
        producers.spawn(async move {
            let tx = outbox_tests::database::begin_immediate(&db).await;
            let appended = Outbox::default().append_once(&tx, id, PLACED).await.unwrap();
            tx.commit().await.unwrap();
            appended
        });
    }
    let appended = producers.join_all().await;
    assert_eq!(appended.iter().filter(|appended| appended.is_new).count(), 1);
    assert!(appended.iter().all(|other| other.row_id == appended[0].row_id));
    assert_eq!(database.count("outbox").await, 1);
}

async fn an_event_of_an_aggregate_needs_one(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    let error = append(&tx, OrderNumbered { number: 1 }).await.unwrap_err();
    assert!(matches!(&error, SaveError::Event(EventError::NeedsAggregate { .. })), "{error}");
    assert!(error.to_string().contains("`append_ordered`"), "{error}");
    tx.commit().await.unwrap();
    assert_eq!(database.count("outbox").await, 0);
}

async fn keys_are_stored_with_their_lanes(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    let outbox = Outbox::default();
    let ids = [
        outbox.append(&tx, CustomerMoved { customer_id: 7 }).await.unwrap(),
        outbox.append_ordered(&tx, "a key", OrderNumbered { number: 1 }).await.unwrap(),
        outbox.append_ordered(&tx, "a key", PLACED).await.unwrap(),
    ];
    tx.commit().await.unwrap();
    let subject = Sql::new(database);
    let mut keys = Vec::new();
    for id in ids {
        let row = outbox_core::OutboxStore::find(subject.store(), id).await.unwrap().unwrap();
        keys.push(row.envelope.ordering_key.unwrap());
    }
    assert_eq!(keys, ["customer_id=7", "=a key", "=a key"]);
    assert_eq!(database.count("outbox_keys").await, 2);
    let lane = outbox_core::event::lane("customer_id=7");
    assert_eq!(
        database.count(&format!("outbox WHERE ordering_key = 'customer_id=7' AND lane = {lane}")).await,
        1
    );
    assert_eq!(database.count("outbox WHERE lane IS NULL").await, 0);
}

async fn many_events_are_one_statement(database: &TestDatabase) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let tx = db.begin().await.unwrap();
    Outbox::default().append_envelopes(&tx, &placed_many(2000)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((statements.take().len(), database.count("outbox").await), (1, 2000));
}

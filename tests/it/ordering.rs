use outbox_seaorm::Outbox;
use outbox_tests::{
    database::{Backend, TestDatabase},
    entities::{FullOrder, Order, orders},
    events::{CustomerMoved, OrderNumbered},
    for_each_database,
    wait::until,
};
use sea_orm::{ConnectionTrait, DatabaseConnection, EntityTrait, TransactionTrait};

for_each_database! {
    ordered_events_of_an_unchanged_root_are_written_in_the_order_of_their_commits,
    ordered_events_beside_a_changed_child_are_written_in_the_order_of_their_commits,
    events_of_one_field_key_are_written_in_the_order_of_their_commits,
    events_of_one_named_key_are_written_in_the_order_of_their_commits,
}

/// Whether some transaction waits for another's lock.
async fn somebody_waits(database: &TestDatabase) -> bool {
    let waiting = if database.backend == Backend::Postgres {
        "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    } else {
        // MariaDB makes this table anew only when nobody has read it for a tenth of a second.
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        "information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
    };
    database.count(waiting).await > 0
}

/// The numbers of the stored events, in the order of their rows.
async fn numbers(database: &TestDatabase) -> Vec<String> {
    let payload = match database.backend {
        Backend::Postgres => "CAST(payload AS text)",
        _ => "payload",
    };
    let sql = format!("SELECT {payload} AS payload FROM outbox ORDER BY id");
    let backend = database.db.get_database_backend();
    let rows = database.db.query_all_raw(sea_orm::Statement::from_string(backend, sql)).await.unwrap();
    rows.iter().map(|row| row.try_get("", "payload").unwrap()).collect()
}

fn numbered(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(|number| format!("{{\"number\":{number}}}")).collect()
}

/// `first` holds the key in an open transaction, `second` must wait for it; only then the first goes on and commits.
async fn in_turn<F>(database: &TestDatabase, second: F, first_goes_on: impl AsyncFnOnce())
where
    F: Future<Output = ()> + Send + 'static,
{
    if database.backend.has_concurrent_writers() {
        let second = tokio::spawn(second);
        until("the second waits", || somebody_waits(database)).await;
        first_goes_on().await;
        second.await.unwrap();
    } else {
        // One writer at a time: the second would not even begin.
        first_goes_on().await;
        second.await;
    }
}

async fn load(db: &DatabaseConnection) -> orders::Model {
    orders::Entity::find().one(db).await.unwrap().unwrap()
}

async fn ordered_events_of_an_unchanged_root_are_written_in_the_order_of_their_commits(
    database: &TestDatabase,
) {
    let db = database.db.clone();
    Order::place("A-1").save(&db).await.unwrap();
    let (mut first, mut second) = (Order::from(load(&db).await), Order::from(load(&db).await));
    let tx = db.begin().await.unwrap();
    first.number(1);
    first.save(&tx).await.unwrap();
    second.number(3);
    let second = async move { second.save(&db).await.unwrap() };
    in_turn(database, second, async || {
        first.number(2);
        first.save(&tx).await.unwrap();
        tx.commit().await.unwrap();
    })
    .await;
    assert_eq!(numbers(database).await[1..], numbered(&[1, 2, 3]));
}

async fn ordered_events_beside_a_changed_child_are_written_in_the_order_of_their_commits(
    database: &TestDatabase,
) {
    let db = database.db.clone();
    FullOrder::place("A-1", 1).save(&db).await.unwrap();
    let full = async || orders::Entity::load().one(&database.db).await.unwrap().unwrap();
    let (mut first, mut second) = (FullOrder::from(full().await), FullOrder::from(full().await));
    let tx = db.begin().await.unwrap();
    first.add_line(1);
    first.save(&tx).await.unwrap();
    second.add_line(3);
    let second = async move { second.save(&db).await.unwrap() };
    in_turn(database, second, async || {
        first.raise(OrderNumbered { number: 2 });
        first.save(&tx).await.unwrap();
        tx.commit().await.unwrap();
    })
    .await;
    assert_eq!(numbers(database).await[1..], numbered(&[1, 2, 3]));
}

async fn events_of_one_field_key_are_written_in_the_order_of_their_commits(database: &TestDatabase) {
    let db = database.db.clone();
    let event = |customer_id| CustomerMoved { customer_id };
    let tx = db.begin().await.unwrap();
    let first = Outbox::default().append(&tx, event(7)).await.unwrap();
    let second = async move {
        let tx = outbox_tests::database::begin_immediate(&db).await;
        Outbox::default().append(&tx, event(7)).await.unwrap();
        tx.commit().await.unwrap();
    };
    in_turn(database, second, async || tx.commit().await.unwrap()).await;
    let earlier = database.db.query_one_raw(sea_orm::Statement::from_string(
        database.db.get_database_backend(),
        "SELECT message_id FROM outbox ORDER BY id LIMIT 1",
    ));
    let earlier: sea_orm::prelude::Uuid = earlier.await.unwrap().unwrap().try_get("", "message_id").unwrap();
    assert_eq!((earlier, database.count("outbox").await), (first.as_uuid(), 2));
}

async fn events_of_one_named_key_are_written_in_the_order_of_their_commits(database: &TestDatabase) {
    let db = database.db.clone();
    let outbox = Outbox::default();
    let tx = db.begin().await.unwrap();
    outbox.append_ordered(&tx, "a", OrderNumbered { number: 1 }).await.unwrap();
    let second = async move {
        let tx = outbox_tests::database::begin_immediate(&db).await;
        outbox.append_ordered(&tx, "a", OrderNumbered { number: 3 }).await.unwrap();
        tx.commit().await.unwrap();
    };
    in_turn(database, second, async || {
        outbox.append_ordered(&tx, "a", OrderNumbered { number: 2 }).await.unwrap();
        tx.commit().await.unwrap();
    })
    .await;
    assert_eq!(numbers(database).await, numbered(&[1, 2, 3]));
}

use outbox_seaorm::{EventBuffer, SaveError};
use outbox_tests::{
    database::TestDatabase,
    entities::{FullOrder, Note, Order, Parcel, Seat, lines, orders, parcels, seats},
    events::{CustomerMoved, OrderShipped},
    for_each_database,
    statements::Statements,
    wait::polls,
};
use sea_orm::{
    ConnectionTrait, EntityTrait, PaginatorTrait, QueryOrder, Set, TransactionTrait, prelude::Uuid,
};

for_each_database! {
    a_save_writes_the_root_and_its_events_together,
    an_event_may_be_all_that_a_save_writes,
    a_save_is_one_insert_of_events_however_many,
    a_failed_save_keeps_root_and_events_for_another_try,
    a_failing_save_inside_a_transaction_leaves_nothing_of_itself,
    a_missing_outbox_table_fails_the_save_and_says_what_to_do,
    events_that_cannot_be_stored_fail_the_save_before_anything_is_written,
    every_kind_of_key_becomes_an_aggregate_id,
    an_event_with_a_key_of_its_own_locks_that_key,
    a_cascading_root_is_saved_with_its_children_and_events,
    a_deleted_root_leaves_its_event,
    deleting_what_is_gone_is_an_error_and_keeps_the_event,
    an_event_of_a_root_that_is_gone_is_not_stored,
    a_cancelled_save_keeps_root_and_events,
    saves_can_be_spawned,
    writers_that_read_first_do_not_lose_each_others_saves,
}

struct Stored {
    event: String,
    aggregate: (Option<String>, Option<String>),
    payload: String,
}

async fn stored(database: &TestDatabase) -> Vec<Stored> {
    let sql = match database.db.get_database_backend() {
        sea_orm::DbBackend::Postgres => {
            "SELECT event_type, aggregate_type, aggregate_id, CAST(payload AS text) AS payload FROM outbox ORDER BY id"
        }
        _ => "SELECT event_type, aggregate_type, aggregate_id, payload FROM outbox ORDER BY id",
    };
    let statement = sea_orm::Statement::from_string(database.db.get_database_backend(), sql);
    let text = |row: &sea_orm::QueryResult, column: &str| row.try_get::<Option<String>>("", column).unwrap();
    let read = |row: &sea_orm::QueryResult| Stored {
        event: text(row, "event_type").unwrap(),
        aggregate: (text(row, "aggregate_type"), text(row, "aggregate_id")),
        payload: text(row, "payload").unwrap(),
    };
    database.db.query_all_raw(statement).await.unwrap().iter().map(read).collect()
}

async fn a_save_writes_the_root_and_its_events_together(database: &TestDatabase) {
    let db = &database.db;
    let mut order = Order::place("A-1");
    order.save(db).await.unwrap();
    assert_eq!(order.pending_events(), 0);
    order.ship("DHL");
    order.save(db).await.unwrap();
    let saved = orders::Entity::find().one(db).await.unwrap().unwrap();
    assert_eq!((saved.code.as_str(), saved.status.as_str()), ("A-1", "shipped"));
    let stored = stored(database).await;
    let id = Some(saved.id.to_string());
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[0].payload, format!("{{\"order_id\":{},\"total_cents\":100}}", saved.id));
    assert_eq!(
        (stored[1].event.as_str(), stored[1].payload.as_str()),
        ("orders.order-shipped", "{\"carrier\":\"DHL\"}")
    );
    assert!(stored.iter().all(|row| row.aggregate == (Some("order".into()), id.clone())));
}

async fn an_event_may_be_all_that_a_save_writes(database: &TestDatabase) {
    let mut order = Order::place("A-1");
    order.save(&database.db).await.unwrap();
    let mut order = Order::from(orders::Entity::find().one(&database.db).await.unwrap().unwrap());
    order.raise(OrderShipped { carrier: "nobody".into() });
    order.save(&database.db).await.unwrap();
    assert_eq!(database.count("outbox").await, 2);
}

async fn a_save_is_one_insert_of_events_however_many(database: &TestDatabase) {
    let mut order = Order::place("A-1");
    for _ in 0..99 {
        order.raise(OrderShipped { carrier: "x".into() });
    }
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    order.save(&db).await.unwrap();
    let sent = statements.take();
    let outbox: Vec<_> = sent.iter().filter(|sql| sql.contains("outbox")).collect();
    assert_eq!(outbox.len(), 1, "{sent:#?}");
    assert!(sent.last().unwrap().starts_with("INSERT INTO"), "the events are the last statement: {sent:#?}");
    assert_eq!(database.count("outbox").await, 100);
}

async fn a_failed_save_keeps_root_and_events_for_another_try(database: &TestDatabase) {
    let db = &database.db;
    Order::place("A-1").save(db).await.unwrap();
    let mut twin = Order::place("A-1");
    let error = twin.save(db).await.unwrap_err();
    assert!(matches!(error, SaveError::Database(_)), "{error}");
    assert_eq!((twin.pending_events(), database.count("outbox").await), (1, 1));
    twin.code = Set("A-2".into());
    twin.save(db).await.unwrap();
    assert_eq!(
        (twin.pending_events(), database.count("outbox").await, database.count("orders").await),
        (0, 2, 2)
    );
}

async fn a_failing_save_inside_a_transaction_leaves_nothing_of_itself(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    Order::place("A-1").save(&tx).await.unwrap();
    let mut twin = FullOrder::place("A-1", 1);
    assert!(twin.save(&tx).await.is_err());
    let mut huge = Order::place("A-2");
    huge.raise(OrderShipped { carrier: "x".repeat(2_000_000) });
    assert!(huge.save(&tx).await.is_err());
    let mut late = Order::place("A-3");
    // Known only when the root has been written.
    late.raise_with(|_| OrderShipped { carrier: "x".repeat(2_000_000) });
    assert!(late.save(&tx).await.is_err());
    // The caller ignores them all and commits: the transaction is not spoiled, and nothing of them is in it.
    tx.commit().await.unwrap();
    let counts =
        (database.count("orders").await, database.count("order_lines").await, database.count("outbox").await);
    assert_eq!(counts, (1, 0, 1));
    twin.discard_events();
}

async fn a_missing_outbox_table_fails_the_save_and_says_what_to_do(database: &TestDatabase) {
    database.db.execute_unprepared("DROP TABLE outbox").await.unwrap();
    let mut order = Order::place("A-1");
    let error = order.save(&database.db).await.unwrap_err();
    assert!(matches!(error, SaveError::Schema(_)), "{error:?}");
    assert!(error.to_string().contains("run the migrations"), "{error}");
    assert_eq!((order.pending_events(), database.count("orders").await), (1, 0));
}

async fn events_that_cannot_be_stored_fail_the_save_before_anything_is_written(database: &TestDatabase) {
    let db = &database.db;
    let mut huge = Order::place("A-1");
    huge.raise(OrderShipped { carrier: "x".repeat(2_000_000) });
    let error = huge.save(db).await.unwrap_err();
    assert!(error.to_string().contains("the limit is 1048576"), "{error}");
    let refused = huge.try_raise(OrderShipped { carrier: "x".repeat(2_000_000) }).unwrap_err();
    assert!(refused.to_string().contains("put a reference into the event"), "{refused}");
    let mut lazy = Order::place("A-2");
    lazy.raise_with(|_| OrderShipped { carrier: "x".repeat(2_000_000) });
    assert!(matches!(lazy.save(db).await.unwrap_err(), SaveError::Event(_)));
    let mut nul = Note::take("title with \0", "body");
    let error = nul.save(db).await.unwrap_err();
    let is_nul = matches!(&error, SaveError::Event(outbox_core::EventError::Nul { .. }));
    // PostgreSQL refuses the NUL in the user's own column before the event is reached.
    assert!(is_nul || matches!(error, SaveError::Database(_)), "{error:?}");
    let mut long = Note::take(&"x".repeat(300), "body");
    let error = long.save(db).await.unwrap_err();
    assert!(error.to_string().contains("aggregate id"), "{error}");
    assert_eq!((database.count("orders").await, database.count("notes").await), (0, 0));
    assert_eq!((database.count("outbox").await, lazy.pending_events()), (0, 2));
}

async fn every_kind_of_key_becomes_an_aggregate_id(database: &TestDatabase) {
    let db = &database.db;
    let id = Uuid::now_v7();
    let mut parcel = Parcel::new(parcels::ActiveModel { id: Set(id), weight: Set(1) });
    parcel.raise(OrderShipped { carrier: "a".into() });
    // A key that is set means nothing: SeaORM's own save would try an UPDATE.
    parcel.save(db).await.unwrap();
    parcel.weight = Set(2);
    parcel.raise(OrderShipped { carrier: "b".into() });
    parcel.save(db).await.unwrap();
    let mut seat =
        Seat::new(seats::ActiveModel { hall: Set("a/b".into()), number: Set(7), taken: Set(false) });
    seat.raise(OrderShipped { carrier: "c".into() });
    seat.save(db).await.unwrap();
    seat.taken = Set(true);
    seat.raise(OrderShipped { carrier: "d".into() });
    seat.save(db).await.unwrap();
    Note::take("ü ß", "body").save(db).await.unwrap();
    let ids: Vec<_> = stored(database).await.into_iter().map(|row| row.aggregate).collect();
    let id = id.to_string();
    let expected = [
        ("shipping.parcel", id.as_str()),
        ("shipping.parcel", id.as_str()),
        ("seat", "a%2Fb/7"),
        ("seat", "a%2Fb/7"),
        ("note", "ü ß"),
    ];
    assert_eq!(ids, expected.map(|(kind, id)| (Some(kind.to_owned()), Some(id.to_owned()))));
    assert_eq!(
        parcels::Entity::find_by_id(parcel.id.clone().unwrap()).one(db).await.unwrap().unwrap().weight,
        2
    );
}

async fn an_event_with_a_key_of_its_own_locks_that_key(database: &TestDatabase) {
    let mut order = Order::place("A-1");
    order.raise(CustomerMoved { customer_id: 7 });
    order.number(1);
    order.save(&database.db).await.unwrap();
    // The aggregate's own key is locked by its row.
    assert_eq!(database.count("outbox_keys WHERE ordering_key = 'customer_id=7'").await, 1);
    assert_eq!((database.count("outbox_keys").await, database.count("outbox").await), (1, 3));
    assert_eq!(database.count("outbox WHERE ordering_key LIKE 'order/%'").await, 1);
}

async fn a_cascading_root_is_saved_with_its_children_and_events(database: &TestDatabase) {
    let db = &database.db;
    let mut order = FullOrder::place("A-1", 3);
    order.save(db).await.unwrap();
    let saved = orders::Entity::find().one(db).await.unwrap().unwrap();
    assert_eq!(
        stored(database).await[0].payload,
        format!("{{\"order_id\":{},\"total_cents\":300}}", saved.id)
    );
    assert_eq!(lines::Entity::find().count(db).await.unwrap(), 3);
    // A new child on a loaded root: `update` hands its action down and fails, so `save` must not use it.
    let loaded = orders::Entity::load().with(lines::Entity).one(db).await.unwrap().unwrap();
    let mut order = FullOrder::from(loaded);
    order.add_line(7);
    order.save(db).await.unwrap();
    assert_eq!((lines::Entity::find().count(db).await.unwrap(), database.count("outbox").await), (4, 2));
}

async fn a_deleted_root_leaves_its_event(database: &TestDatabase) {
    let db = &database.db;
    let mut order = FullOrder::place("A-1", 2);
    order.save(db).await.unwrap();
    order.raise(OrderShipped { carrier: "gone".into() });
    order.delete(db).await.unwrap();
    let counts =
        (database.count("orders").await, database.count("order_lines").await, database.count("outbox").await);
    assert_eq!((counts, order.pending_events()), ((0, 0, 2), 0));
}

async fn deleting_what_is_gone_is_an_error_and_keeps_the_event(database: &TestDatabase) {
    let db = &database.db;
    Order::place("A-1").save(db).await.unwrap();
    let model = orders::Entity::find().order_by_asc(orders::Column::Id).one(db).await.unwrap().unwrap();
    orders::Entity::delete_by_id(model.id).exec(db).await.unwrap();
    let mut order = Order::from(model);
    order.raise(OrderShipped { carrier: "x".into() });
    let error = order.delete(db).await.unwrap_err();
    assert!(matches!(error, SaveError::Gone { aggregate_type: "order" }), "{error}");
    assert_eq!((order.pending_events(), database.count("outbox").await), (1, 1));
}

async fn an_event_of_a_root_that_is_gone_is_not_stored(database: &TestDatabase) {
    let db = &database.db;
    FullOrder::place("A-1", 0).save(db).await.unwrap();
    let loaded = orders::Entity::load().one(db).await.unwrap().unwrap();
    let flat = orders::Entity::find().one(db).await.unwrap().unwrap();
    let (mut full, mut flat) = (FullOrder::from(loaded), Order::from(flat));
    orders::Entity::delete_many().exec(db).await.unwrap();
    // Nothing of the root changed, so SeaORM would not look at it.
    full.raise(OrderShipped { carrier: "x".into() });
    flat.raise(OrderShipped { carrier: "x".into() });
    assert!(matches!(full.save(db).await, Err(SaveError::Gone { aggregate_type: "order" })));
    assert!(matches!(flat.save(db).await, Err(SaveError::Gone { aggregate_type: "order" })));
    assert_eq!((full.pending_events(), database.count("outbox").await), (1, 1));
}

async fn a_cancelled_save_keeps_root_and_events(database: &TestDatabase) {
    let mut order = FullOrder::place("A-1", 1);
    // Polled so often and dropped, each time a step later, until a save gets through. Each on a pool of its own: the
    // driver may leave a connection unusable when a statement is dropped half-way.
    let mut steps = 0;
    loop {
        steps += 1;
        let db = database.connect().await;
        let polled = polls(steps, order.save(&db)).await;
        drop(db);
        match polled {
            None => assert_eq!(order.pending_events(), 1, "after {steps} steps"),
            Some(Ok(())) => break,
            // Dropped while its COMMIT was under way, a save may have been stored; the next one says so.
            Some(Err(SaveError::AlreadyStored { .. })) => break order.discard_events(),
            Some(Err(error)) => panic!("after {steps} steps: {error}"),
        }
    }
    assert_eq!(order.pending_events(), 0);
    let counts =
        (database.count("orders").await, database.count("order_lines").await, database.count("outbox").await);
    assert_eq!(counts, (1, 1, 1));
}

async fn saves_can_be_spawned(database: &TestDatabase) {
    let db = database.db.clone();
    let saved = tokio::spawn(async move {
        let mut order = FullOrder::place("A-1", 1);
        order.save(&db).await.map(|()| order.pending_events())
    });
    assert_eq!(saved.await.unwrap().unwrap(), 0);
}

async fn writers_that_read_first_do_not_lose_each_others_saves(database: &TestDatabase) {
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let db = database.db.clone();
        writers.spawn(async move {
            for n in 0..5 {
                let mut order = Order::place(&format!("{writer}-{n}"));
                order.save(&db).await.unwrap();
                order.ship("x");
                order.save(&db).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    assert_eq!((database.count("orders").await, database.count("outbox").await), (40, 80));
}

#[test]
fn a_buffer_names_no_payload_in_its_debug_text() {
    let mut buffer = EventBuffer::<orders::Model>::default();
    buffer.raise(OrderShipped { carrier: "secret".into() });
    assert!(!format!("{buffer:?}").contains("secret"));
    buffer.discard();
}

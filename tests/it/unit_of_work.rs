use outbox_core::{Envelope, HandlerError, Relay, RelayConfig, Router, buffer::LastSave};
use outbox_seaorm::{
    Aggregate, EventBuffer, Outbox, OutboxTransaction, SaveError, SeaOrmStore, TableNames, UnitOfWork,
    migrate, save_all,
};
use outbox_tests::{
    database::{Backend, TestDatabase, connect},
    entities::{FullOrder, Note, Order, Ticket, notes, orders, tickets},
    events::{CustomerMoved, NoteTaken, OrderPlaced, OrderShipped},
    for_each_database,
    proxy::Proxy,
    statements::Statements,
    wait::{polls, until},
};
use sea_orm::{
    ConnectionTrait, DatabaseExecutor, EntityTrait, PaginatorTrait, Set, Statement, TransactionTrait,
};
use std::time::Duration;
use tokio::sync::oneshot;

for_each_database! {
    many_aggregates_are_one_insert_of_events_and_it_is_the_last_statement,
    events_keep_the_order_of_the_aggregates_and_of_their_raising,
    aggregates_of_any_type_share_a_unit_whatever_is_done_with_them,
    one_refusal_leaves_nothing_of_all_and_keeps_everything_for_another_try,
    a_unit_that_fails_in_a_transaction_leaves_nothing_of_itself,
    every_aggregate_learns_how_the_transaction_around_its_unit_ended,
    a_unit_whose_commit_answer_was_lost_is_found_to_be_stored,
    of_a_message_that_is_stored_already_only_its_own_aggregate_is_refused_for_good,
    a_cancelled_unit_keeps_every_root_and_every_event,
    more_events_than_one_statement_takes_are_still_one_unit,
    events_go_to_the_tables_of_their_aggregates,
    keys_of_all_aggregates_are_locked,
    an_empty_unit_begins_no_transaction,
    a_unit_can_be_spawned_and_wakes_the_relay,
    a_save_on_an_executor_wakes_the_relay,
}

fn orders_named(codes: std::ops::Range<u32>) -> Vec<Order> {
    codes.map(|code| Order::place(&format!("A-{code}"))).collect()
}

async fn counts(database: &TestDatabase) -> (i64, i64) {
    (database.count("orders").await, database.count("outbox").await)
}

/// What each stored row tells, in the order of the rows.
async fn events(database: &TestDatabase) -> Vec<(String, String)> {
    let backend = database.db.get_database_backend();
    let sql = "SELECT event_type, aggregate_type FROM outbox ORDER BY id";
    let rows = database.db.query_all_raw(Statement::from_string(backend, sql)).await.unwrap();
    let text = |row: &sea_orm::QueryResult, column| row.try_get::<String>("", column).unwrap();
    rows.iter().map(|row| (text(row, "event_type"), text(row, "aggregate_type"))).collect()
}

fn is_outbox_insert(sql: &str) -> bool {
    sql.starts_with("INSERT INTO") && sql.contains("outbox")
}

async fn many_aggregates_are_one_insert_of_events_and_it_is_the_last_statement(database: &TestDatabase) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let mut each = orders_named(0..20);
    for order in &mut each {
        order.save(&db).await.unwrap();
    }
    let one_by_one = statements.take();
    let mut all = orders_named(20..40);
    save_all(&db, &mut all).await.unwrap();
    let together = statements.take();
    let inserts = |sent: &[String]| sent.iter().filter(|sql| is_outbox_insert(sql)).count();
    assert_eq!((inserts(&one_by_one), inserts(&together)), (20, 1), "{together:#?}");
    assert_eq!(together.len(), one_by_one.len() - 19, "and nothing else was added");
    assert!(is_outbox_insert(together.last().unwrap()), "{together:#?}");
    assert!(all.iter().all(|order| order.pending_events() == 0));
    assert_eq!(counts(database).await, (40, 40));
    // They are loaded now, so another round updates them.
    for order in &mut all {
        order.ship("DHL");
    }
    save_all(&db, &mut all).await.unwrap();
    let stored = orders::Entity::find().all(&database.db).await.unwrap();
    assert_eq!(stored.iter().filter(|order| order.status == "shipped").count(), 20);
}

async fn events_keep_the_order_of_the_aggregates_and_of_their_raising(database: &TestDatabase) {
    let (mut first, mut second) = (Order::place("A-1"), Note::take("title", "body"));
    first.ship("DHL");
    second.raise(OrderShipped { carrier: "x".into() });
    UnitOfWork::new().save(&mut first).save(&mut second).run(&database.db).await.unwrap();
    let told = [
        ("orders.order-placed", "order"),
        ("orders.order-shipped", "order"),
        ("notes.note-taken", "note"),
        ("orders.order-shipped", "note"),
    ];
    assert_eq!(events(database).await, told.map(|(event, kind)| (event.to_owned(), kind.to_owned())));
}

async fn aggregates_of_any_type_share_a_unit_whatever_is_done_with_them(database: &TestDatabase) {
    let db = &database.db;
    let (mut gone, mut moved) = (Note::take("gone", "body"), Ticket::open());
    UnitOfWork::new().insert(&mut gone).save(&mut moved).run(db).await.unwrap();
    gone.raise(NoteTaken { text: "gone".into() });
    moved.move_to("closed");
    let mut placed = FullOrder::place("A-1", 2);
    UnitOfWork::new().delete(&mut gone).update(&mut moved).save(&mut placed).run(db).await.unwrap();
    let ticket = tickets::Entity::find().one(db).await.unwrap().unwrap();
    assert_eq!((ticket.state.as_str(), ticket.version), ("closed", 2));
    assert_eq!((database.count("notes").await, database.count("order_lines").await), (0, 2));
    assert_eq!(counts(database).await, (1, 5));
    assert_eq!(gone.title.clone().unwrap(), "gone", "what was deleted stays in memory as it was");
    assert!(placed.id.is_unchanged(), "the generated key is the aggregate's");
}

async fn one_refusal_leaves_nothing_of_all_and_keeps_everything_for_another_try(database: &TestDatabase) {
    let db = &database.db;
    Order::place("A-9").save(db).await.unwrap();
    let mut ids = Vec::new();
    let mut all = orders_named(0..3);
    for (order, code) in all.iter_mut().zip(["A-1", "A-2", "A-9"]) {
        order.code = Set(code.into());
        ids.push(order.try_raise(OrderShipped { carrier: "x".into() }).unwrap());
    }
    // The last root is refused, and in the second round an event that only the written root reveals.
    let error = save_all(db, &mut all).await.unwrap_err();
    assert!(matches!(error, SaveError::Database(_)), "{error}");
    all[2].code = Set("A-3".into());
    let mut late = Order::place("A-4");
    late.raise_with(|_| OrderShipped { carrier: "x".repeat(2_000_000) });
    let error = save_all(db, all.iter_mut().chain([&mut late])).await.unwrap_err();
    assert!(matches!(error, SaveError::Event(_)), "{error}");
    assert_eq!(counts(database).await, (1, 1));
    assert!(all.iter().all(|order| order.pending_events() == 2 && order.id.is_not_set()));
    save_all(db, &mut all).await.unwrap();
    assert_eq!(counts(database).await, (4, 7));
    let store = SeaOrmStore::new(db.clone());
    for id in ids {
        let row = outbox_core::OutboxStore::find(&store, id).await.unwrap();
        assert!(row.is_some(), "under the message id of the first try");
    }
}

async fn a_unit_that_fails_in_a_transaction_leaves_nothing_of_itself(database: &TestDatabase) {
    let tx = database.db.begin().await.unwrap();
    Order::place("A-1").save(&tx).await.unwrap();
    let mut all = [Order::place("A-2"), Order::place("A-1")];
    assert!(save_all(&tx, &mut all).await.is_err());
    let mut others = orders_named(3..5);
    save_all(&tx, &mut others).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(counts(database).await, (3, 3));
}

async fn every_aggregate_learns_how_the_transaction_around_its_unit_ended(database: &TestDatabase) {
    let db = &database.db;
    let (mut order, mut note) = (Order::place("A-1"), Note::take("a", "b"));
    let tx = db.begin().await.unwrap();
    UnitOfWork::new().save(&mut order).save(&mut note).run(&tx).await.unwrap();
    assert!(matches!(order.last_save(), LastSave::Joined { ids, fate: None } if ids.len() == 1));
    tx.rollback().await.unwrap();
    for _ in 0..2 {
        assert!(matches!(order.save(db).await, Err(SaveError::RolledBack { aggregate_type: "order" })));
        assert!(matches!(note.save(db).await, Err(SaveError::RolledBack { aggregate_type: "note" })));
    }
    // An `OutboxTransaction` tells even those that raised nothing.
    let mut order = Order::place("A-2");
    let mut silent = Note::new(notes::ActiveModel { title: Set("c".into()), body: Set("d".into()) });
    let undone = OutboxTransaction::run(db, async |tx| {
        UnitOfWork::new().save(&mut order).save(&mut silent).run(tx).await?;
        Err::<(), _>(SaveError::Database(sea_orm::DbErr::Custom("mine".to_owned())))
    });
    undone.await.unwrap_err();
    assert!(matches!(silent.save(db).await, Err(SaveError::RolledBack { aggregate_type: "note" })));
    assert!(matches!(order.save(db).await, Err(SaveError::RolledBack { aggregate_type: "order" })));
    assert_eq!((counts(database).await, database.count("notes").await), ((0, 0), 0));
}

async fn a_unit_whose_commit_answer_was_lost_is_found_to_be_stored(database: &TestDatabase) {
    // SQLite has no wire that could break; a cancelled unit has a test of its own.
    if database.backend == Backend::Sqlite {
        return;
    }
    let mut all = orders_named(1..3);
    let proxy = Proxy::before(&database.url).await;
    let db = connect(&proxy.url, 1).await;
    proxy.lose_the_next_commits_answer();
    let error = save_all(&db, &mut all).await.unwrap_err();
    assert!(matches!(error, SaveError::Database(_)), "{error}");
    for _ in 0..2 {
        let error = save_all(&database.db, &mut all).await.unwrap_err();
        assert!(matches!(error, SaveError::AlreadyStored { aggregate_type: "order", .. }), "{error}");
    }
    // The second was never looked at in that unit, and finds it out by itself.
    let error = all[1].save(&database.db).await.unwrap_err();
    assert!(matches!(error, SaveError::AlreadyStored { .. }), "{error}");
    assert_eq!(counts(database).await, (2, 2));
}

async fn of_a_message_that_is_stored_already_only_its_own_aggregate_is_refused_for_good(
    database: &TestDatabase,
) {
    let (mut first, mut second) = (Order::place("A-1"), Note::take("a", "b"));
    let id = second.try_raise(NoteTaken { text: "c".into() }).unwrap();
    // As if a commit that nobody heard of arrived between the look for the messages and their INSERT.
    let tx = database.db.begin().await.unwrap();
    let stored = Envelope::with_id(id, &NoteTaken { text: "c".into() }).unwrap();
    Outbox::default().append_envelopes(&tx, &[stored]).await.unwrap();
    tx.commit().await.unwrap();
    let unit = UnitOfWork::new().save(&mut first).save(&mut second);
    let error = unit.run(&database.db).await.unwrap_err();
    assert!(
        matches!(error, SaveError::AlreadyStored { aggregate_type: "note", message_id } if message_id == id),
        "{error}"
    );
    assert_eq!((counts(database).await, database.count("notes").await), ((0, 1), 0));
    first.save(&database.db).await.unwrap();
    assert!(matches!(second.save(&database.db).await, Err(SaveError::AlreadyStored { .. })));
    assert_eq!(counts(database).await, (1, 2));
}

async fn a_cancelled_unit_keeps_every_root_and_every_event(database: &TestDatabase) {
    let (mut order, mut note) = (FullOrder::place("A-1", 1), Note::take("a", "b"));
    for steps in 1.. {
        let db = database.connect().await;
        let unit = UnitOfWork::new().save(&mut order).save(&mut note);
        let polled = polls(steps, unit.run(&db)).await;
        drop(db);
        match polled {
            None => assert_eq!((order.pending_events(), note.pending_events()), (1, 1), "{steps} steps"),
            Some(Ok(())) => break,
            // Dropped while its COMMIT was under way.
            Some(Err(SaveError::AlreadyStored { .. })) => {
                order.discard_events();
                note.discard_events();
                break;
            }
            Some(Err(error)) => panic!("after {steps} steps: {error}"),
        }
    }
    assert_eq!((counts(database).await, database.count("notes").await), ((1, 2), 1));
}

async fn more_events_than_one_statement_takes_are_still_one_unit(database: &TestDatabase) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let mut all = orders_named(0..3);
    for order in &mut all {
        for _ in 0..1_000 {
            order.raise(OrderShipped { carrier: "x".into() });
        }
    }
    save_all(&db, &mut all).await.unwrap();
    let sent = statements.take();
    let inserts = sent.iter().filter(|sql| is_outbox_insert(sql)).count();
    // 3,003 rows of 13 values; SQLite takes 32,766 values in a statement.
    assert_eq!((inserts, database.count("outbox").await), (2, 3_003));
    assert!(sent[sent.len() - 2..].iter().all(|sql| is_outbox_insert(sql)), "the last two");
}

const OTHER: TableNames = TableNames::new().prefix("other_");

/// A note whose events go elsewhere.
#[derive(Debug, Aggregate)]
#[aggregate(name = "note", tables = OTHER)]
struct OtherNote {
    #[aggregate(root)]
    root: notes::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<notes::Model>,
}

async fn events_go_to_the_tables_of_their_aggregates(database: &TestDatabase) {
    migrate(&database.db, OTHER).await.unwrap();
    let mut note = OtherNote::new(notes::ActiveModel { title: Set("a".into()), body: Set("b".into()) });
    note.raise(NoteTaken { text: "b".into() });
    let (mut first, mut last) = (Order::place("A-1"), Order::place("A-2"));
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    UnitOfWork::new().save(&mut first).save(&mut note).save(&mut last).run(&db).await.unwrap();
    let sent = statements.take();
    assert_eq!(sent.iter().filter(|sql| is_outbox_insert(sql)).count(), 2, "{sent:#?}");
    assert_eq!((database.count("outbox").await, database.count("other_outbox").await), (2, 1));
}

async fn keys_of_all_aggregates_are_locked(database: &TestDatabase) {
    let mut all = orders_named(0..3);
    for (order, customer_id) in all.iter_mut().zip([3, 1, 3]) {
        order.raise(CustomerMoved { customer_id });
    }
    save_all(&database.db, &mut all).await.unwrap();
    assert_eq!((database.count("outbox_keys").await, database.count("outbox").await), (2, 6));
}

async fn an_empty_unit_begins_no_transaction(database: &TestDatabase) {
    let closed = database.connect().await;
    closed.clone().close().await.unwrap();
    let mut none = orders_named(0..0);
    save_all(&closed, &mut none).await.unwrap();
    assert!(save_all(&closed, &mut orders_named(0..1)).await.is_err(), "one would need the database");
}

/// Runs the work beside a relay that only a commit of this process can wake in time.
async fn dispatched(database: &TestDatabase, work: impl Future<Output = ()>) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let hour = Duration::from_hours(1);
    let config = RelayConfig { poll_min: hour, poll_max: hour, ..RelayConfig::default() };
    let relay = Relay::new(SeaOrmStore::new(db), router).with_config(config);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
    let mut looks = 0;
    until("the relay has looked for rows, found none and sleeps", || {
        looks += statements.take().iter().filter(|sql| sql.contains("lease_token IS NULL")).count();
        // One for expired leases and one for due rows.
        std::future::ready(looks >= 2)
    })
    .await;
    work.await;
    let all = async || database.count("outbox WHERE status <> 'dispatched'").await == 0;
    until("all are dispatched", all).await;
    drop(stop);
    running.await.unwrap().unwrap();
}

async fn a_unit_can_be_spawned_and_wakes_the_relay(database: &TestDatabase) {
    let db = database.db.clone();
    dispatched(database, async move {
        let saved = tokio::spawn(async move {
            let mut full = FullOrder::place("full", 1);
            let mut plain = Order::place("plain");
            UnitOfWork::new().save(&mut full).save(&mut plain).run(&db).await?;
            save_all(&db, &mut orders_named(0..2)).await
        });
        saved.await.unwrap().unwrap();
    })
    .await;
    assert_eq!(orders::Entity::find().count(&database.db).await.unwrap(), 4);
}

async fn a_save_on_an_executor_wakes_the_relay(database: &TestDatabase) {
    let executor = DatabaseExecutor::from(&database.db);
    dispatched(database, async {
        let mut order = Order::place("A-1");
        order.save(&executor).await.unwrap();
        // The type cannot say whether it was a transaction's, so its next save looks.
        assert!(matches!(order.last_save(), LastSave::Joined { ids, .. } if ids.len() == 1));
        order.status = Set("again".into());
        order.save(&database.db).await.unwrap();
        assert!(matches!(order.last_save(), LastSave::Settled));
    })
    .await;
    assert_eq!(counts(database).await, (1, 1));
}

use super::*;
use outbox_core::{FromMessage, MessageContext, OutboxStore, State, Status, handler::Call};
use outbox_seaorm::{TableNames, append, migrate};
use outbox_tests::{
    entities::Order, events::OrderShipped, for_each_database, interposed::Interposed, running::Running,
    statements::Statements, wait::until,
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

for_each_database! {
    effect_and_progress_are_one_commit,
    several_handlers_of_one_event_have_a_transaction_each,
    what_is_done_is_marked_without_being_run,
    a_handler_that_never_begins_sends_nothing,
    all_arguments_of_a_call_share_the_transaction,
    what_is_saved_and_raised_in_it_belongs_to_it,
    other_table_names_are_honoured,
    many_handlers_at_once_wait_for_each_other_where_they_must,
}

/// A second connection sees both or neither.
async fn effect_and_progress_are_one_commit(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let id = order.message_id;
    let look = move |event: OrderPlaced, tx: Tx, State(store): State<SeaOrmStore>| async move {
        effect(tx.begin().await?, &event, "look").await?;
        let row = store.find(id).await?.unwrap();
        assert!(row.progress.is_empty(), "nothing is known before the end");
        Fine::Ok(())
    };
    // The mark does not come through, so all that is known of the handler is what it has committed itself.
    let store = SeaOrmStore::new(database.db.clone());
    let refused = Interposed::new(store.clone(), |asked| {
        (asked.name() == "mark").then_some(outbox_core::store::StoreErrorKind::Unavailable)
    });
    let router = effects.router().state(store).on("tests.effect", look).build().unwrap();
    assert!(Relay::new(refused, router).pass().await.is_err());
    let row = effects.row(&order).await;
    assert_eq!((row.status, effects.count().await), (Status::Claimed, 1));
    assert_eq!(row.progress.keys().collect::<Vec<_>>(), ["tests.effect"]);
}

async fn several_handlers_of_one_event_have_a_transaction_each(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let fails_once = |event: OrderPlaced, tx: Tx, cx: MessageContext| async move {
        effect(tx.begin().await?, &event, "second").await?;
        if cx.attempt() == 1 { Err(HandlerError::transient("once")) } else { Ok(()) }
    };
    let router = effects.router().on("tests.first", count).on("tests.second", fails_once);
    let relay = effects.relay_of(router.on("tests.third", count));
    let first = relay.pass().await.unwrap();
    assert_eq!(
        (first.retried, effects.count().await),
        (1, 2),
        "the others are not undone by the one that failed"
    );
    let row = effects.row(&order).await;
    assert_eq!(row.progress.keys().collect::<Vec<_>>(), ["tests.first", "tests.third"]);
    assert_eq!(relay.pass().await.unwrap().dispatched, 1);
    assert_eq!(database.count("effects WHERE handler = 'second'").await, 1);
    assert_eq!(effects.count().await, 3);
}

/// A relay died between the commit of the last handler and its mark.
async fn what_is_done_is_marked_without_being_run(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let store = SeaOrmStore::new(database.db.clone());
    let refused = Interposed::new(store, |asked| {
        (asked.name() == "mark").then_some(outbox_core::store::StoreErrorKind::Unavailable)
    });
    let router = effects.router().on("tests.effect", count).build().unwrap();
    let config = RelayConfig { lease: Duration::from_millis(100), ..impatient() };
    assert!(Relay::new(refused, router).with_config(config).pass().await.is_err());
    let relay = effects.relay(|_: OrderPlaced, _: Tx| async { Fine::Err(HandlerError::terminal("it ran")) });
    let later = chrono::Utc::now() + Duration::from_mins(1);
    let report = relay.pass_at(Some(later)).await.unwrap();
    assert_eq!((report.taken_over, report.dispatched), (1, 1));
    assert_eq!((effects.row(&order).await.status, effects.count().await), (Status::Dispatched, 1));
}

async fn a_handler_that_never_begins_sends_nothing(database: &TestDatabase) {
    let (mut effects, order) = Effects::of_one(database).await;
    let sent = Statements::listen(&mut effects.pool);
    let report = effects.pass(|_: OrderPlaced, _: Tx| async { Fine::Ok(()) }).await;
    assert_eq!((report.dispatched, sent.take().len()), (1, 0));
    assert!(effects.row(&order).await.progress.is_empty(), "an ordinary mark");
    effects.subject.append(&[placed(2)]).await;
    assert_eq!(effects.pass(count).await.dispatched, 1);
    assert_eq!(sent.take().len(), 1, "of those that are counted, the progress is the only one");
}

/// An extractor of the application's own, on top of the transaction.
struct Journal(Tx);

impl FromMessage for Journal {
    fn from_message(call: &Call) -> Result<Self, HandlerError> {
        Tx::from_message(call).map(Self)
    }

    fn requires() -> Option<outbox_core::handler::Requirement> {
        Tx::requires()
    }
}

async fn all_arguments_of_a_call_share_the_transaction(database: &TestDatabase) {
    let (effects, _) = Effects::of_one(database).await;
    let both = |event: OrderPlaced, first: Tx, Journal(second): Journal| async move {
        effect(first.begin().await?, &event, "first").await?;
        effect(second.begin().await?, &event, "second").await?;
        let begun = std::ptr::from_ref(first.begin().await?).addr();
        assert_eq!(begun, std::ptr::from_ref(second.begin().await?).addr());
        if event.total_cents == 100 { Err(HandlerError::transient("undo both")) } else { Ok(()) }
    };
    assert_eq!(effects.pass(both).await.retried, 1);
    assert_eq!(effects.count().await, 0);
    let again = move |event: OrderPlaced, first: Tx, second: Journal| {
        both(OrderPlaced { total_cents: 1, ..event }, first, second)
    };
    assert_eq!(effects.pass(again).await.dispatched, 1);
    assert_eq!(effects.count().await, 2);
    let missing = Router::builder().on("tests.journal", |_: OrderPlaced, _: Journal| async { Fine::Ok(()) });
    let error = missing.build().unwrap_err().to_string();
    assert!(error.contains("outbox_seaorm::handle::Transactions") && error.contains("add .state"), "{error}");
}

async fn what_is_saved_and_raised_in_it_belongs_to_it(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let save = |_: OrderPlaced, tx: Tx, cx: MessageContext| async move {
        let tx = tx.begin().await?;
        let mut order = Order::place(&format!("attempt {}", cx.attempt()));
        order.raise(OrderShipped { carrier: "raised".into() });
        order.save(tx).await?;
        append(tx, OrderShipped { carrier: "appended".into() }).await?;
        if cx.attempt() == 1 { Err(HandlerError::transient("undo all of it")) } else { Ok(()) }
    };
    let shipped = Arc::new(AtomicBool::new(false));
    let note = shipped.clone();
    let ship = move |_: OrderShipped| {
        note.store(true, SeqCst);
        async { Fine::Ok(()) }
    };
    // Only a commit wakes it in time.
    let slow =
        RelayConfig { poll_min: Duration::from_mins(5), poll_max: Duration::from_mins(5), ..impatient() };
    let woken = effects.relay_of(Router::builder().on("tests.ship", ship)).with_config(slow);
    let woken = Running::start(woken);
    assert_eq!(effects.pass(save).await.retried, 1);
    assert_eq!((database.count("orders").await, database.count("outbox").await), (0, 1));
    assert_eq!(effects.pass(save).await.dispatched, 1);
    until("the commit wakes a relay", || async { shipped.load(SeqCst) }).await;
    woken.stop().await;
    assert_eq!((database.count("orders").await, database.count("outbox").await), (1, 4));
    assert_eq!(database.count("outbox WHERE causation_id IS NOT NULL").await, 3);
    let conversation = format!("outbox WHERE correlation_id = '{}'", order.message_id);
    assert_eq!(database.count(&conversation).await, 3);
}

const SHOP: TableNames = TableNames::new().prefix("shop_");

async fn other_table_names_are_honoured(database: &TestDatabase) {
    let effects = Effects::new(database).await;
    migrate(&database.db, SHOP).await.unwrap();
    let tx = OutboxTransaction::begin(&database.db).await.unwrap();
    outbox_seaorm::Outbox::new(SHOP).append_envelopes(&tx, &[placed(1)]).await.unwrap();
    tx.commit().await.unwrap();
    let relay = |transactions| {
        let router = Router::builder().state(transactions).on("tests.effect", count).build().unwrap();
        Relay::new(SeaOrmStore::with_tables(database.db.clone(), SHOP), router).with_config(impatient())
    };
    let report = relay(Transactions::new(effects.pool.clone())).pass().await.unwrap();
    assert_eq!((report.retried, effects.count().await), (1, 0), "the progress would be written elsewhere");
    let says =
        "shop_outbox WHERE error_class = 'lease-expired' AND last_error LIKE '%table names of the relay%'";
    assert_eq!(database.count(says).await, 1);
    let report = relay(Transactions::with_tables(effects.pool.clone(), SHOP)).pass().await.unwrap();
    assert_eq!((report.dispatched, effects.count().await), (1, 1));
}

/// More handlers than connections; on SQLite they would meet a busy database without their turns.
async fn many_handlers_at_once_wait_for_each_other_where_they_must(database: &TestDatabase) {
    let effects = Effects::new(database).await;
    let orders: Vec<_> = (1..=60).map(placed).collect();
    effects.subject.append(&orders).await;
    let slow = |event: OrderPlaced, tx: Tx| async move {
        let tx = tx.begin().await?;
        effect(tx, &event, "slow").await?;
        tokio::task::yield_now().await;
        Fine::Ok(effect(tx, &event, "again").await?)
    };
    let report = effects.relay(slow).pass().await.unwrap();
    assert_eq!((report.dispatched, report.retried), (60, 0));
    assert_eq!(effects.count().await, 120);
}

use outbox_core::{
    Envelope, EventHandler, FromMessage, HandlerError, MessageContext, MessageId, OutboxStore, Relay,
    RelayConfig, Router, State, handler::Call, testing::MemoryStore,
};
use outbox_seaorm::{Outbox, SaveError, SeaOrmStore, append, hooks};
use outbox_tests::{
    database::TestDatabase,
    entities::Order,
    events::{NoteTaken, OrderPlaced, OrderShipped},
    for_each_database,
};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement, TransactionTrait};
use std::sync::{Arc, Mutex};

for_each_database! {
    what_a_handler_writes_names_the_message_that_it_handles,
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What was made while a handler ran.
type Made = Arc<Mutex<Vec<Envelope>>>;

fn made(text: &str) -> Envelope {
    Envelope::new(&NoteTaken { text: text.to_owned() }).unwrap()
}

/// What is kept of a message's origin.
fn origin(envelope: &Envelope) -> (Option<MessageId>, Option<&str>, Option<&str>) {
    let trace = envelope.headers.get("traceparent").map(String::as_str);
    (envelope.causation_id, envelope.correlation_id.as_deref(), trace)
}

/// Every way to write an event.
async fn write_all(_: OrderPlaced, State(db): State<DatabaseConnection>) -> Result<(), HandlerError> {
    let mut order = Order::place("made by a handler");
    order.raise(OrderShipped { carrier: "raised".into() });
    order.save(&db).await?;
    let tx = db.begin().await?;
    append(&tx, OrderShipped { carrier: "appended".into() }).await?;
    Outbox::default().append_once(&tx, MessageId::new(), OrderShipped { carrier: "once".into() }).await?;
    hooks::raise(&tx, "order", 7, &OrderShipped { carrier: "hook".into() }).await?;
    tx.commit().await?;
    Ok(())
}

async fn what_a_handler_writes_names_the_message_that_it_handles(database: &TestDatabase) {
    let db = &database.db;
    let cause = Envelope::new(&OrderPlaced { order_id: 1, total_cents: 1 }).unwrap();
    let id = cause.message_id;
    assert_eq!(origin(&cause), (None, None, None), "nothing was handled");
    let cause = cause.with_header("traceparent", TRACE).with_header("tracestate", "a=b");
    let tx = db.begin().await.unwrap();
    Outbox::default().append_envelopes(&tx, &[cause.with_header("tenant", "acme")]).await.unwrap();
    tx.commit().await.unwrap();

    let router = Router::builder().state(db.clone()).on("tests.write-all", write_all).build().unwrap();
    let relay = Relay::new(SeaOrmStore::new(db.clone()), router);
    assert_eq!(relay.pass().await.unwrap().dispatched, 1);
    assert_eq!(database.count("outbox").await, 6);
    let headers = [("traceparent".to_owned(), TRACE.to_owned()), ("tracestate".to_owned(), "a=b".to_owned())];
    for message in messages(database).await.into_iter().filter(|message| *message != id) {
        let stored = relay.store().find(message).await.unwrap().unwrap().envelope;
        assert_eq!(origin(&stored), (Some(id), Some(id.to_string().as_str()), Some(TRACE)));
        assert_eq!(stored.headers, headers.clone().into(), "and no header that is not the trace's");
    }
}

/// The ids of all messages.
async fn messages(database: &TestDatabase) -> Vec<MessageId> {
    let backend = database.db.get_database_backend();
    let sql = "SELECT message_id FROM outbox ORDER BY id";
    let rows = database.db.query_all_raw(Statement::from_string(backend, sql)).await.unwrap();
    rows.iter().map(|row| row.try_get::<uuid::Uuid>("", "message_id").unwrap().into()).collect()
}

/// Handles messages with a handler in memory, and returns what it made.
async fn handled<H, Args>(causes: Vec<Envelope>, handler: impl FnOnce(Made) -> H) -> Vec<Envelope>
where
    H: outbox_core::Handler<Args>,
{
    let made = Made::default();
    let store = MemoryStore::default();
    store.append(&causes).unwrap();
    let router = Router::builder().on("tests.make", handler(made.clone())).build().unwrap();
    let report = Relay::new(store, router).pass().await.unwrap();
    assert_eq!(report.claimed, causes.len() as u64);
    std::mem::take(&mut *made.lock().unwrap())
}

fn cause() -> Envelope {
    Envelope::new(&OrderPlaced { order_id: 1, total_cents: 1 }).unwrap()
}

#[tokio::test]
async fn a_conversation_keeps_its_id_through_all_that_it_leads_to() {
    let first = cause().with_correlation_id("request 7").with_header("traceparent", TRACE);
    let id = first.message_id;
    let second = handled(vec![first], |made| {
        move |_: OrderPlaced| {
            let made = made.clone();
            async move {
                tokio::task::yield_now().await;
                made.lock().unwrap().push(cause());
                Ok::<(), HandlerError>(())
            }
        }
    });
    let second = second.await.remove(0);
    assert_eq!(origin(&second), (Some(id), Some("request 7"), Some(TRACE)));
    let id = second.message_id;
    let third = handled(vec![second], |made| {
        move |_: OrderPlaced| {
            // Before the handler's future is there.
            made.lock().unwrap().push(cause());
            std::future::ready(Ok::<(), HandlerError>(()))
        }
    });
    assert_eq!(origin(&third.await[0]), (Some(id), Some("request 7"), Some(TRACE)));
    assert_eq!(origin(&cause()), (None, None, None), "the handler is over");
}

#[tokio::test]
async fn what_the_application_sets_stays() {
    let (first, other) = (cause().with_header("traceparent", TRACE), MessageId::new());
    let all = handled(vec![first], |kept| {
        move |_: OrderPlaced| {
            let kept = kept.clone();
            async move {
                let set = made("set").with_correlation_id("mine").with_causation_id(other);
                let mut cleared = made("cleared");
                cleared.causation_id = None;
                kept.lock().unwrap().extend([set.with_header("traceparent", "another"), cleared]);
                Ok::<(), HandlerError>(())
            }
        }
    });
    let all = all.await;
    assert_eq!(origin(&all[0]), (Some(other), Some("mine"), Some("another")));
    assert_eq!(all[1].causation_id, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_side_by_side_do_not_mix_their_messages() {
    let causes: Vec<_> = (0..20).map(|_| cause()).collect();
    let all = handled(causes, |made| {
        move |_: OrderPlaced, cx: MessageContext| {
            let made = made.clone();
            async move {
                for _ in 0..5 {
                    let raised = cause();
                    assert_eq!(raised.causation_id, Some(cx.message_id()));
                    made.lock().unwrap().push(raised);
                    tokio::task::yield_now().await;
                }
                Ok::<(), HandlerError>(())
            }
        }
    });
    assert_eq!(all.await.len(), 100, "a failed assertion would have ended a handler early");
}

#[tokio::test]
async fn a_spawned_task_is_on_its_own_unless_it_takes_the_message_along() {
    let first = cause();
    let id = first.message_id;
    let all = handled(vec![first], |kept| {
        move |_: OrderPlaced, cx: MessageContext| {
            let kept = kept.clone();
            async move {
                let alone = tokio::spawn(async { made("alone") });
                let scoped = tokio::spawn(cx.scope(async { made("scoped") }));
                let context = cx.clone();
                let blocking = tokio::task::spawn_blocking(move || context.scope_sync(|| made("blocking")));
                let all = [alone.await?, scoped.await?, blocking.await?];
                kept.lock().unwrap().extend(all);
                Ok::<(), HandlerError>(())
            }
        }
    });
    let causes: Vec<_> = all.await.iter().map(|envelope| envelope.causation_id).collect();
    assert_eq!(causes, [None, Some(id), Some(id)]);
}

#[tokio::test]
async fn the_cause_is_fixed_when_an_event_is_raised_and_not_when_it_is_saved() {
    let kept: Arc<Mutex<Option<Order>>> = Arc::default();
    let first = cause();
    let id = first.message_id;
    let slot = kept.clone();
    handled(vec![first], |_| {
        move |_: OrderPlaced| {
            // Raised with a closure that runs later, inside the save.
            *slot.lock().unwrap() = Some(Order::place("A-1"));
            std::future::ready(Ok::<(), HandlerError>(()))
        }
    })
    .await;
    let db = sea_orm::Database::connect("sqlite::memory:").await.unwrap();
    outbox_seaorm::migrate(&db, outbox_seaorm::TableNames::new()).await.unwrap();
    outbox_tests::entities::create_tables(&db).await.unwrap();
    let mut order = kept.lock().unwrap().take().unwrap();
    order.save(&db).await.map_err(|error: SaveError| error.to_string()).unwrap();
    let found = outbox_tests::database::count(&db, "outbox WHERE causation_id IS NOT NULL").await.unwrap();
    assert_eq!(found, 1, "caused by {id}");
}

/// An argument that makes an event when it is built, and another one when it is dropped.
struct Maker(Made);

impl FromMessage for Maker {
    fn from_message(call: &Call) -> Result<Self, HandlerError> {
        let made_list = call.state::<Made>().ok_or_else(|| HandlerError::transient("no list"))?;
        made_list.lock().unwrap().push(made("built"));
        Ok(Self(made_list))
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(made("dropped"));
    }
}

struct ByStruct(Made);

impl EventHandler<OrderPlaced> for ByStruct {
    async fn handle(&self, _: OrderPlaced, _: &MessageContext) -> Result<(), HandlerError> {
        self.0.lock().unwrap().push(made("struct"));
        panic!("the next one on this thread must not inherit it");
    }
}

#[tokio::test]
async fn every_part_of_a_handler_belongs_to_its_message_and_nothing_after_it() {
    let list = Made::default();
    let store = MemoryStore::default();
    let (first, second) = (cause(), cause());
    let ids = [first.message_id, second.message_id];
    store.append(&[first, second]).unwrap();
    let hangs = |_: OrderPlaced, maker: Maker| async move {
        std::future::pending::<()>().await;
        drop(maker);
        Ok::<(), HandlerError>(())
    };
    let router = Router::builder()
        .state(list.clone())
        .on_struct("tests.by-struct", ByStruct(list.clone()))
        .on("tests.hangs", hangs)
        .build()
        .unwrap();
    let config =
        RelayConfig { handler_timeout: std::time::Duration::from_millis(1), ..RelayConfig::default() };
    let report = Relay::new(store, router).with_config(config).pass().await.unwrap();
    assert_eq!(report.claimed, 2);
    let all = list.lock().unwrap();
    for id in ids {
        let of_message = all.iter().filter(|envelope| envelope.causation_id == Some(id)).count();
        assert_eq!(of_message, 3, "struct, built and dropped");
    }
    assert_eq!((all.len(), origin(&cause())), (6, (None, None, None)));
}

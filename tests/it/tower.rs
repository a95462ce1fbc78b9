use outbox_core::{
    ErrorClass, HandlerError, MessageContext, Relay, RelayConfig, RetryPolicy, Router, RouterBuilder,
    handler::Call, relay::PassReport, router::CallError, testing::MemoryStore,
};
use outbox_seaorm::{OutboxTransaction, SeaOrmStore, Transactions, Tx};
use outbox_tests::{
    database::{Backend, TestDatabase, connect},
    events::{OrderPlaced, OrderShipped, placed, placed_many},
    for_each_database,
    proxy::Proxy,
    subject::{Sql, Subject},
};
use sea_orm::ConnectionTrait;
use std::{
    error::Error,
    future::Ready,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
};
use tower::{
    Service,
    layer::layer_fn,
    limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer, RateLimitLayer},
    load_shed::LoadShedLayer,
    retry::{Policy, RetryLayer},
    timeout::TimeoutLayer,
    util::MapErrLayer,
};

for_each_database! {
    a_layer_that_tries_again_repeats_no_effect,
    a_layer_that_tries_again_after_a_lost_answer_repeats_no_effect,
    a_layer_that_calls_twice_at_once_has_one_effect,
    a_broker_that_never_confirms_is_cut_off_and_leaves_the_pool_alone,
}

type Fine = Result<(), HandlerError>;

/// Handles so many orders in memory, in one pass.
async fn pass(orders: i32, router: RouterBuilder) -> (PassReport, MemoryStore) {
    let store = MemoryStore::default();
    store.append(&placed_many(orders)).unwrap();
    let relay = Relay::new(store.clone(), router.build().unwrap()).with_config(impatient());
    (relay.pass().await.unwrap(), store)
}

fn impatient() -> RelayConfig {
    let retry = RetryPolicy { base: Duration::ZERO, cap: Duration::ZERO, ..RetryPolicy::default() };
    RelayConfig { retry, ..RelayConfig::default() }
}

/// What the only attempt of the only row failed with.
fn failure(store: &MemoryStore) -> (ErrorClass, String) {
    let history = store.history();
    let [entry] = history.as_slice() else { panic!("{history:?}") };
    (entry.failed.class, entry.failed.error.clone())
}

/// Counts how many calls run at once, and the most of it.
#[derive(Clone, Default)]
struct AtOnce(Arc<[AtomicU32; 2]>);

impl AtOnce {
    async fn run(self) -> Fine {
        let now = self.0[0].fetch_add(1, SeqCst) + 1;
        self.0[1].fetch_max(now, SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.0[0].fetch_sub(1, SeqCst);
        Ok(())
    }

    fn most(&self) -> u32 {
        self.0[1].load(SeqCst)
    }
}

fn fine() -> impl Fn(OrderPlaced) -> Ready<Fine> {
    |_| std::future::ready(Ok(()))
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_longer_than_its_layer_allows_has_timed_out() {
    let slow = |event: OrderPlaced| async move {
        tokio::time::sleep(Duration::from_secs(u64::from(event.order_id == 1) * 7)).await;
        Fine::Ok(())
    };
    let router = Router::builder().layer(TimeoutLayer::new(Duration::from_secs(5)));
    let (report, store) = pass(2, router.on("tests.slow", slow)).await;
    assert_eq!((report.dispatched, report.retried), (1, 1));
    assert_eq!(failure(&store).0, ErrorClass::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_limit_counts_the_calls_of_a_handler_or_of_all() {
    let (first, second) = (AtOnce::default(), AtOnce::default());
    let both = AtOnce::default();
    let handler = |own: &AtOnce| {
        let (own, both) = (own.clone(), both.clone());
        move |_: OrderPlaced| {
            let (own, both) = (own.clone(), both.clone());
            async move { tokio::join!(own.run(), both.run()).0 }
        }
    };
    // The rows are handled side by side, the handlers of each one after the other: some rows are at the second handler by then.
    let router = Router::builder().on("tests.first", handler(&first)).on("tests.second", handler(&second));
    let (report, _) = pass(20, router.layer_for("tests.first", ConcurrencyLimitLayer::new(3))).await;
    assert_eq!((report.dispatched, first.most()), (20, 3));
    assert!(second.most() <= 3 && both.most() > 3, "{} {}", second.most(), both.most());

    let (first, second, all) = (AtOnce::default(), AtOnce::default(), AtOnce::default());
    let handler = |own: &AtOnce| {
        let (own, all) = (own.clone(), all.clone());
        move |_: OrderPlaced| {
            let (own, all) = (own.clone(), all.clone());
            async move { tokio::join!(own.run(), all.run()).0 }
        }
    };
    let router = Router::builder().on("tests.first", handler(&first)).on("tests.second", handler(&second));
    let (report, _) = pass(20, router.layer(GlobalConcurrencyLimitLayer::new(4))).await;
    assert_eq!((report.dispatched, all.most()), (20, 4));
}

#[tokio::test(start_paused = true)]
async fn a_rate_holds_for_all_calls_of_a_handler() {
    let began = tokio::time::Instant::now();
    let layer = RateLimitLayer::new(2, Duration::from_secs(1));
    let (report, _) = pass(10, Router::builder().on("tests.fine", fine()).layer(layer)).await;
    assert_eq!(report.dispatched, 10);
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_shed_is_tried_again() {
    let layer = tower::ServiceBuilder::new()
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .into_inner();
    let slow = |_: OrderPlaced| async {
        tokio::task::yield_now().await;
        Fine::Ok(())
    };
    let (report, store) = pass(5, Router::builder().layer(layer).on("tests.slow", slow)).await;
    assert!(report.dispatched >= 1 && report.retried >= 1, "{report:?}");
    assert!(store.history().iter().all(|entry| entry.failed.class == ErrorClass::Transient));
}

#[tokio::test]
async fn a_handlers_own_error_comes_through_as_it_is() {
    for (class, error) in [
        (ErrorClass::Transient, (|| HandlerError::transient("no")) as fn() -> HandlerError),
        (ErrorClass::Terminal, || HandlerError::terminal("no")),
        (ErrorClass::Uncertain, || HandlerError::uncertain("no")),
    ] {
        let fails = move |_: OrderPlaced| async move { Fine::Err(error()) };
        let wrapped = MapErrLayer::new(Wrapped);
        let timeout = TimeoutLayer::new(Duration::from_secs(5));
        let plain = Router::builder().on("tests.fails", fails).layer(timeout.clone());
        let (_, store) = pass(1, plain).await;
        assert_eq!(failure(&store), (class, "no".to_owned()));
        let (_, store) =
            pass(1, Router::builder().on("tests.fails", fails).layer(wrapped).layer(timeout)).await;
        assert_eq!(failure(&store), (class, "wrapped: no".to_owned()));
    }
}

/// A layer's own error around a handler's.
#[derive(Debug)]
struct Wrapped(CallError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("wrapped")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// A service that fails where it is told to.
#[derive(Clone, Copy)]
struct Broken(&'static str);

impl Service<Call> for Broken {
    type Response = ();
    type Error = std::io::Error;
    type Future = Ready<Result<(), std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        match self.0 {
            "never ready" => Poll::Pending,
            "not ready" => Poll::Ready(Err(std::io::Error::other("not ready"))),
            "panics when asked" => panic!("asked"),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, call: Call) -> Self::Future {
        assert_eq!(call.handler_id(), "tests.fine");
        assert_ne!(self.0, "panics when called", "called");
        std::future::ready(Err(std::io::Error::other("fails")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_broken_fails_its_handler_and_nothing_else() {
    for (way, class) in [
        ("never ready", ErrorClass::Timeout),
        ("not ready", ErrorClass::Transient),
        ("panics when asked", ErrorClass::Panic),
        ("panics when called", ErrorClass::Panic),
        ("fails", ErrorClass::Transient),
    ] {
        let layer = layer_fn(move |_| Broken(way));
        let router = Router::builder().on("tests.fine", fine()).on("tests.other", fine());
        let (report, store) = pass(1, router.layer_for("tests.fine", layer)).await;
        assert_eq!((report.retried, failure(&store).0), (1, class), "{way}");
        assert_eq!(store.rows()[0].progress.keys().collect::<Vec<_>>(), ["tests.other"], "{way}");
    }
}

#[test]
fn a_layer_for_a_handler_that_is_not_there_is_an_error_of_the_router() {
    let layer = TimeoutLayer::new(Duration::from_secs(1));
    let router = Router::builder().on("tests.fine", fine()).layer_for("tests.fine", layer.clone());
    let error = router.layer_for("tests.fnie", layer).build().unwrap_err().to_string();
    assert!(error.contains("\"tests.fnie\"") && error.contains("tests/it/tower.rs"), "{error}");
    assert!(!error.contains("\"tests.fine\""), "{error}");
}

#[tokio::test]
async fn the_layer_that_is_given_last_is_outside() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = |name: &'static str| {
        let seen = seen.clone();
        layer_fn(move |inner| Noted { name, seen: seen.clone(), inner })
    };
    let router = Router::builder().layer(noted("inside")).on("tests.fine", fine()).layer(noted("outside"));
    assert_eq!(pass(1, router).await.0.dispatched, 1);
    assert_eq!(*seen.lock().unwrap(), ["outside", "inside"]);
}

struct Noted<S> {
    name: &'static str,
    seen: Arc<std::sync::Mutex<Vec<&'static str>>>,
    inner: S,
}

impl<S: Service<Call>> Service<Call> for Noted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> S::Future {
        self.seen.lock().unwrap().push(self.name);
        self.inner.call(call)
    }
}

/// Tries again, so often.
#[derive(Clone)]
struct Again(u32);

impl Policy<Call, (), CallError> for Again {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Call, result: &mut Result<(), CallError>) -> Option<Ready<()>> {
        let fails = result.as_ref().is_err_and(|error| !error.class().is_final());
        self.0 = self.0.checked_sub(u32::from(fails))?;
        fails.then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, call: &Call) -> Option<Call> {
        Some(call.clone())
    }
}

async fn effect(tx: &OutboxTransaction, event: &OrderPlaced) -> Fine {
    let sql = format!("INSERT INTO effects (order_id) VALUES ({})", event.order_id);
    tx.execute_unprepared(&sql).await?;
    Ok(())
}

/// A database with effects and one order, and its messages' routers.
async fn prepared(database: &TestDatabase, pool: sea_orm::DatabaseConnection) -> RouterBuilder {
    database.db.execute_unprepared("CREATE TABLE effects (order_id INT NOT NULL)").await.unwrap();
    Sql::new(database).append(&[placed(1)]).await;
    Router::builder().state(Transactions::new(pool))
}

async fn sql_pass(database: &TestDatabase, router: RouterBuilder) -> PassReport {
    let store = SeaOrmStore::new(database.db.clone());
    Relay::new(store, router.build().unwrap()).with_config(impatient()).pass().await.unwrap()
}

async fn a_layer_that_tries_again_repeats_no_effect(database: &TestDatabase) {
    let calls = Arc::new(AtomicU32::new(0));
    let count = calls.clone();
    let third_time = move |event: OrderPlaced, tx: Tx| {
        let call = count.fetch_add(1, SeqCst) + 1;
        async move {
            effect(tx.begin().await?, &event).await?;
            if call < 3 { Err(HandlerError::transient("not yet")) } else { Ok(()) }
        }
    };
    let router = prepared(database, database.connect().await).await;
    let router = router.on("tests.third", third_time).layer(RetryLayer::new(Again(5)));
    assert_eq!(sql_pass(database, router).await.dispatched, 1);
    assert_eq!(
        (calls.load(SeqCst), database.count("effects").await),
        (3, 1),
        "what failed was undone in between"
    );
}

async fn a_layer_that_tries_again_after_a_lost_answer_repeats_no_effect(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // No wire that could break.
    }
    let calls = Arc::new(AtomicU32::new(0));
    let count = calls.clone();
    let handle = move |event: OrderPlaced, tx: Tx| {
        count.fetch_add(1, SeqCst);
        async move { effect(tx.begin().await?, &event).await }
    };
    let proxy = Proxy::before(&database.url).await;
    let router = prepared(database, connect(&proxy.url, 2).await).await;
    proxy.lose_the_next_commits_answer();
    let router = router.on("tests.handle", handle).layer(RetryLayer::new(Again(5)));
    assert_eq!(sql_pass(database, router).await.dispatched, 1);
    assert_eq!((calls.load(SeqCst), database.count("effects").await), (2, 1), "the second finds the first");
}

/// A layer that calls twice, and takes both answers.
struct Twice<S>(S);

impl<S> Service<Call> for Twice<S>
where
    S: Service<Call, Response = (), Error: Send, Future: Send + 'static>,
{
    type Response = ();
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<(), S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let both = (self.0.call(call.clone()), self.0.call(call));
        Box::pin(async move {
            let (first, second) = tokio::join!(both.0, both.1);
            first.and(second)
        })
    }
}

async fn a_layer_that_calls_twice_at_once_has_one_effect(database: &TestDatabase) {
    let handle = |event: OrderPlaced, tx: Tx| async move { effect(tx.begin().await?, &event).await };
    let router = prepared(database, database.connect().await).await;
    let router = router.on("tests.handle", handle).layer(layer_fn(Twice));
    assert_eq!(sql_pass(database, router).await.dispatched, 1);
    assert_eq!(database.count("effects").await, 1);
}

/// A stand-in for a broker: it takes what it is sent, and never answers.
async fn silent_broker() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((client, _)) = listener.accept().await {
            kept.push(client);
        }
    });
    address
}

async fn a_broker_that_never_confirms_is_cut_off_and_leaves_the_pool_alone(database: &TestDatabase) {
    let broker = silent_broker().await;
    // The application's own pool has one connection, which the handler's transactions are not made of.
    let application = connect(&database.url, 1).await;
    let transactions = connect(&database.url, 1).await;
    let look = application.clone();
    let publish = move |event: OrderPlaced, tx: Tx, cx: MessageContext| {
        let look = look.clone();
        async move {
            effect(tx.begin().await?, &event).await?;
            let mut connection = TcpStream::connect(broker).await?;
            outbox_tests::database::count(&look, "effects").await?;
            if cx.attempt() == 1 {
                connection.read_u8().await?;
            }
            Fine::Ok(())
        }
    };
    let router = || async {
        let layer = TimeoutLayer::new(Duration::from_millis(300));
        Router::builder()
            .state(Transactions::new(transactions.clone()))
            .on("tests.publish", publish.clone())
            .layer(layer)
    };
    drop(prepared(database, transactions.clone()).await);
    assert_eq!(sql_pass(database, router().await).await.retried, 1);
    let timed_out = "outbox WHERE error_class = 'timeout'";
    assert_eq!((database.count(timed_out).await, database.count("effects").await), (1, 0));
    assert_eq!(outbox_tests::database::count(&application, "outbox").await.unwrap(), 1, "it is free");
    // The only connection of the transactions is free again as well.
    assert_eq!(sql_pass(database, router().await).await.dispatched, 1);
    assert_eq!(database.count("effects").await, 1);
}

#[tokio::test]
async fn a_layer_of_one_handler_leaves_the_others_alone() {
    let store = MemoryStore::default();
    store.append(&[outbox_core::Envelope::new(&OrderShipped { carrier: "x".into() }).unwrap()]).unwrap();
    let ship = |_: OrderShipped| async { Fine::Ok(()) };
    let router = Router::builder().on("tests.ship", ship).on("tests.fine", fine());
    let router = router.layer_for("tests.fine", layer_fn(|_| Broken("fails"))).build().unwrap();
    assert_eq!(Relay::new(store, router).pass().await.unwrap().dispatched, 1);
}

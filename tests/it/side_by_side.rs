use outbox_core::{HandlerError, OutboxStore, Relay, RelayConfig, Router};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    database::{Backend, TestDatabase},
    events::{OrderPlaced, placed, placed_many},
    for_each_database,
    interposed::{Asked, Interposed},
    running::Running,
    statements::Statements,
    subject::{Sql, Subject},
    wait::until,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use tokio::sync::Semaphore;

for_each_database! {
    a_backlog_is_claimed_side_by_side_while_handlers_are_faster,
    handlers_that_are_slower_than_claims_are_not_given_more_than_a_batch,
    a_backlog_takes_a_claim_and_a_mark_for_each_batch,
    a_backlog_in_order_is_claimed_in_larger_parts_while_handlers_are_faster,
}

const BATCH: u32 = 10;

fn config() -> RelayConfig {
    RelayConfig { batch_size: BATCH, ..RelayConfig::default() }
}

/// A relay whose handlers wait for permits, how many of them have begun, and the most claims that it made at once.
fn watched(
    database: &TestDatabase,
    open: &Arc<Semaphore>,
) -> (Relay<impl OutboxStore>, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let judge = move |asked: Asked<'_>| {
        match asked {
            Asked::Claim => drop(seen.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst)),
            Asked::Claimed => drop(now.fetch_sub(1, SeqCst)),
            _ => {}
        }
        None
    };
    let (open, begun) = (open.clone(), Arc::new(AtomicUsize::new(0)));
    let count = begun.clone();
    let accept = move |_: OrderPlaced| {
        count.fetch_add(1, SeqCst);
        let open = open.clone();
        async move {
            open.acquire().await?.forget();
            Ok::<(), HandlerError>(())
        }
    };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let store = Interposed::new(SeaOrmStore::new(database.db.clone()), judge);
    (Relay::new(store, router).with_config(config()), begun, most)
}

async fn dispatched(database: &TestDatabase, rows: i64) {
    until("rows are dispatched", || async {
        database.count("outbox WHERE status = 'dispatched'").await == rows
    })
    .await;
}

async fn a_backlog_is_claimed_side_by_side_while_handlers_are_faster(database: &TestDatabase) {
    Sql::new(database).append(&placed_many(500)).await;
    let (relay, _, most) = watched(database, &Arc::new(Semaphore::new(500)));
    let running = Running::start(relay);
    dispatched(database, 500).await;
    running.stop().await;
    // SQLite has one writer at a time.
    let expected = if database.backend == Backend::Sqlite { 1 } else { 2 };
    assert_eq!(most.load(SeqCst), expected);
    assert_eq!(database.count("outbox WHERE claims = 1").await, 500);
}

async fn handlers_that_are_slower_than_claims_are_not_given_more_than_a_batch(database: &TestDatabase) {
    Sql::new(database).append(&placed_many(100)).await;
    let open = Arc::new(Semaphore::new(0));
    let (relay, begun, most) = watched(database, &open);
    let running = Running::start(relay);
    for done in 0..10_usize {
        until("a batch runs", || async { begun.load(SeqCst) >= BATCH as usize + 6 * done }).await;
        assert_eq!(database.count("outbox WHERE status = 'claimed'").await, i64::from(BATCH));
        // Some go on, and others run all the time.
        open.add_permits(6);
        dispatched(database, 6 * (i64::try_from(done).unwrap() + 1)).await;
    }
    assert_eq!(most.load(SeqCst), 1);
    open.add_permits(100);
    dispatched(database, 100).await;
    running.stop().await;
}

async fn a_backlog_takes_a_claim_and_a_mark_for_each_batch(database: &TestDatabase) {
    Sql::new(database).append(&placed_many(500)).await;
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let config = RelayConfig { batch_size: 100, ..RelayConfig::default() };
    let running = Running::start(Relay::new(SeaOrmStore::new(db), router).with_config(config));
    dispatched(database, 500).await;
    running.stop().await;
    let sent = statements.take();
    let updates =
        |status: &str| sent.iter().filter(|sql| sql.contains(&format!("SET status = '{status}'"))).count();
    // Two of a batch and two of two are the fewest. A claim begins when half a batch is left, so there may be twice as many; what comes after the last row claims
    // nothing on databases that look before they claim.
    let (claims, marks) = (updates("claimed"), updates("dispatched"));
    assert!((4..=10 + 10).contains(&claims), "{claims} claims");
    // A write of marks is a statement for each claim that it has rows of; two batches are written together.
    assert!((3..=claims + 10).contains(&marks), "{marks} marks of {claims} claims");
}

async fn a_backlog_in_order_is_claimed_in_larger_parts_while_handlers_are_faster(database: &TestDatabase) {
    let keyed = |n: i32| placed(n).with_ordering_key(&format!("key-{}", n % 100));
    Sql::new(database).append(&(0..500).map(keyed).collect::<Vec<_>>()).await;
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let running = Running::start(Relay::new(SeaOrmStore::new(db), router).with_config(config()));
    dispatched(database, 500).await;
    running.stop().await;
    let claims = statements.take().iter().filter(|sql| sql.contains("SET status = 'claimed'")).count();
    if database.backend == Backend::Sqlite {
        assert!(claims >= 50, "{claims} claims");
    } else {
        assert!((5..50).contains(&claims), "{claims} claims");
    }
    assert_eq!(database.count("outbox WHERE claims = 1").await, 500);
}

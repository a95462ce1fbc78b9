use outbox_core::{
    HandlerError, OutboxStore, Relay, Router, RowId, State, Status,
    decide::{AttemptOutcome, Transition},
    observe::Observed,
    store::{Finished, OrderedRequest, OutboxOperator, Purge, Replay},
};
use outbox_seaorm::{Outbox, SeaOrmStore};
use outbox_tests::{
    conformance::{at, claim, mark, request},
    database::{Backend, TestDatabase},
    entities::Order,
    events::{OrderPlaced, placed, placed_many},
    for_each_database,
    running::{Running, fast},
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectionTrait, TransactionTrait};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::JoinSet;

for_each_database! {
    many_relays_on_rows_that_are_tried_again_count_each_attempt_once,
    relays_producers_purges_and_operators_are_not_in_each_others_way,
    ids_may_be_as_large_as_they_like,
}

type Calls = Arc<AtomicI64>;

/// Saves of each producer.
const SAVES: i64 = 40;

async fn many_relays_on_rows_that_are_tried_again_count_each_attempt_once(database: &TestDatabase) {
    let subject = Sql::new(database);
    let tx = database.db.begin().await.unwrap();
    Outbox::default().append_envelopes(&tx, &placed_many(400)).await.unwrap();
    tx.commit().await.unwrap();
    let (token, rows) = claim(&subject, 400, None).await;
    let again = Transition::Retry { delay: Duration::ZERO, outcome: AttemptOutcome::default() };
    mark(&subject, token, &rows, &again, None).await;
    let calls = Calls::default();
    let count = |_: OrderPlaced, State(calls): State<Calls>| async move {
        calls.fetch_add(1, SeqCst);
        Ok::<(), HandlerError>(())
    };
    let router = Router::builder().state(calls.clone()).on("tests.count", count).build().unwrap();
    let relays = if database.backend == Backend::Sqlite { 4 } else { 20 };
    let start = || Running::start(Relay::new(subject.store().clone(), router.clone()).with_config(fast()));
    let running: Vec<_> = (0..relays).map(|_| start()).collect();
    until("all are dispatched", async || database.count("outbox WHERE status = 'dispatched'").await == 400)
        .await;
    for relay in running {
        relay.stop().await;
    }
    assert_eq!(calls.load(SeqCst), 400);
    assert_eq!(database.count("outbox WHERE attempts = 2 AND claims = 2").await, 400);
}

/// What went wrong, anywhere.
#[derive(Clone, Default)]
struct Errors(Arc<Mutex<Vec<String>>>);

impl Errors {
    fn add(&self, error: &impl ToString) {
        self.0.lock().unwrap().push(error.to_string());
    }
}

/// A relay that tells what the database refuses it.
fn watched(store: SeaOrmStore, router: Router, errors: &Errors) -> Running {
    let errors = errors.clone();
    let relay = Relay::new(store, router).with_config(fast()).observe(move |observed| {
        if let Observed::StoreFailed { doing, error } = observed {
            errors.add(&format!("{doing}: {error}"));
        }
    });
    Running::start(relay)
}

/// Five that purge whatever is dispatched, until all has ended.
fn purging(store: &SeaOrmStore, errors: &Errors, ended: &Arc<AtomicBool>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..5 {
        let (store, errors, ended) = (store.clone(), errors.clone(), ended.clone());
        tasks.spawn(async move {
            let purge =
                Purge { finished: Finished::Dispatched, older_than: Duration::ZERO, limit: 20, now: None };
            while !ended.load(SeqCst) {
                match store.purge(&purge).await {
                    Ok(purged) => assert!(purged.rows <= 20),
                    Err(error) => errors.add(&error),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    tasks
}

async fn produce(database: &TestDatabase, producers: i64, errors: &Errors) {
    let mut producing = JoinSet::new();
    for producer in 0..producers {
        let (db, errors) = (database.db.clone(), errors.clone());
        producing.spawn(async move {
            for n in 0..SAVES {
                if let Err(error) = Order::place(&format!("{producer}-{n}")).save(&db).await {
                    errors.add(&error);
                }
            }
        });
    }
    producing.join_all().await;
}

async fn relays_producers_purges_and_operators_are_not_in_each_others_way(database: &TestDatabase) {
    let store = SeaOrmStore::new(database.db.clone());
    let (errors, handled, ended) = (Errors::default(), Calls::default(), Arc::new(AtomicBool::new(false)));
    let handle = |_: OrderPlaced, State(handled): State<Calls>| async move {
        match handled.fetch_add(1, SeqCst) % 20 {
            7 => Err(HandlerError::terminal("one in twenty is refused")),
            _ => Ok(()),
        }
    };
    let router = Router::builder().state(handled.clone()).on("tests.handle", handle).build().unwrap();
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(watched(SeaOrmStore::new(database.connect().await), router.clone(), &errors));
    }
    let purges = purging(&store, &errors, &ended);
    let producers = if database.backend.has_concurrent_writers() { 6 } else { 2 };
    produce(database, producers, &errors).await;
    until("everything is finished", async || database.count("outbox WHERE finished_at IS NULL").await == 0)
        .await;
    // Replays of all dead letters, while everything else goes on.
    let mut dead = Vec::new();
    for row in database.db.query_all_raw(dead_rows(database)).await.unwrap() {
        dead.push(RowId(row.try_get("", "id").unwrap()));
    }
    assert!(!dead.is_empty());
    for (n, id) in dead.iter().enumerate() {
        let replay = Replay { id: *id, by: "ann", reason: None, all_handlers: false };
        let done = if n % 2 == 0 {
            store.replay(&replay).await.map(drop)
        } else {
            store.skip(*id, "ann", None, None).await
        };
        done.unwrap_or_else(|error| errors.add(&error));
    }
    until("everything is finished", async || database.count("outbox WHERE finished_at IS NULL").await == 0)
        .await;
    ended.store(true, SeqCst);
    purges.join_all().await;
    for relay in running {
        relay.stop().await;
    }
    let errors = errors.0.lock().unwrap().clone();
    assert_eq!(errors, [""; 0]);
    assert!(handled.load(SeqCst) >= producers * SAVES);
    assert_eq!(
        database.count("outbox WHERE attempts > 1").await,
        0,
        "nobody's attempt was used up by another"
    );
}

fn dead_rows(database: &TestDatabase) -> sea_orm::Statement {
    let sql = "SELECT id FROM outbox WHERE status = 'dead' AND resolved_at IS NULL ORDER BY id";
    sea_orm::Statement::from_string(database.db.get_database_backend(), sql)
}

async fn ids_may_be_as_large_as_they_like(database: &TestDatabase) {
    let subject = Sql::new(database);
    for next in [(1_i64 << 31) - 2, (1 << 53) - 1] {
        let set = match database.backend {
            Backend::Postgres => format!("ALTER TABLE outbox ALTER COLUMN id RESTART WITH {next}"),
            Backend::MySql => format!("ALTER TABLE outbox AUTO_INCREMENT = {next}"),
            Backend::Sqlite => {
                format!("REPLACE INTO sqlite_sequence (name, seq) VALUES ('outbox', {})", next - 1)
            }
        };
        if database.backend == Backend::Sqlite {
            database
                .db
                .execute_unprepared("DELETE FROM sqlite_sequence WHERE name = 'outbox'")
                .await
                .unwrap();
        }
        database.db.execute_unprepared(&set).await.unwrap();
        every_verb_works(&subject, next).await;
    }
}

async fn every_verb_works(subject: &Sql, first: i64) {
    let store = subject.store();
    let ids = subject.append(&placed_many(5)).await;
    assert_eq!(ids, (first..first + 5).map(RowId).collect::<Vec<_>>());
    let (token, rows) = claim(subject, 5, at(0)).await;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), ids);
    let dead = Transition::Dead(AttemptOutcome::new(
        outbox_core::row::Progress::new(),
        vec![outbox_core::decide::FailedAttempt {
            handler: None,
            class: outbox_core::ErrorClass::Terminal,
            error: "no".into(),
        }],
    ));
    let later = Transition::Retry { delay: Duration::from_hours(9), outcome: AttemptOutcome::default() };
    mark(subject, token, &rows[..2], &dead, at(1)).await;
    mark(subject, token, &rows[2..3], &later, at(1)).await;
    mark(subject, token, &rows[3..4], &Transition::Dispatched, at(1)).await;
    let replay = Replay { id: ids[0], by: "ann", reason: None, all_handlers: false };
    assert_eq!(store.replay(&replay).await.unwrap(), RowId(first + 5));
    store.skip(ids[1], "ann", None, at(2)).await.unwrap();
    store.retry_now(ids[2], at(2)).await.unwrap();
    store.release(ids[4], at(90)).await.unwrap();
    let (token, rows) = claim(subject, 9, at(91)).await;
    assert_eq!(rows.len(), 3);
    mark(subject, token, &rows, &Transition::Dispatched, at(91)).await;
    // In order, with a blocked key.
    let keyed = [placed(1).with_ordering_key("k"), placed(2).with_ordering_key("k")];
    let ids = subject.append(&keyed).await;
    let claim = request(1, at(92));
    let claimed = store.claim_ordered(&OrderedRequest { claim, after: None }).await.unwrap().claimed.rows;
    mark(subject, claim.token, &claimed, &dead, at(92)).await;
    let blocked = store.blocked_keys(9, at(93)).await.unwrap();
    assert_eq!((blocked[0].head, blocked[0].followers), (ids[0], 1));
    assert_eq!(store.signals(at(93)).await.unwrap().blocked.followers, 1);
    for (id, envelope) in ids.into_iter().zip(&keyed) {
        store.skip(id, "ann", None, at(93)).await.unwrap();
        assert_eq!(subject.row(envelope).await.status, Status::Dead);
    }
    let purge = Purge { finished: Finished::Dispatched, older_than: Duration::ZERO, limit: 100, now: at(99) };
    assert_eq!(store.purge(&purge).await.unwrap().rows, 4);
}

use outbox_core::{
    Envelope, ErrorClass, HandlerError, MessageContext, OutboxStore, Relay, RelayConfig, Router,
    RouterBuilder, Status,
    decide::{AttemptOutcome, Transition},
    relay::Retention,
    store::{Finished, OutboxOperator, Pause, Purge, StoreErrorKind},
    testing::MemoryStore,
};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    conformance::{at, claim, mark},
    database::TestDatabase,
    events::{NoteTaken, OrderPlaced, placed, placed_many},
    for_each_database,
    interposed::{Asked, Interposed},
    running::{Running, fast},
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::ConnectionTrait;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

for_each_database! {
    a_handler_that_runs_for_five_leases_runs_once,
    a_batch_that_takes_longer_than_its_lease_is_handled_once_by_two_relays,
    a_stopping_relay_renews_what_still_runs,
    a_handler_whose_lease_is_lost_is_cut_off_and_its_mark_comes_too_late,
    a_pause_is_followed_by_a_running_relay_and_producers_do_not_notice,
    an_event_that_is_ignored_is_dispatched_without_a_handler,
    rows_are_deleted_when_they_are_dispatched_if_they_are_not_to_be_kept,
    a_running_relay_purges,
    the_history_of_a_row_stays_until_the_row_is_finished_for_good,
    resolved_dead_letters_are_purged_only_when_asked,
    one_purge_runs_at_a_time,
    relays_know_of_each_other_while_they_run,
    a_row_that_was_left_behind_is_not_taken_over_while_its_event_is_paused,
}

fn relay(database: &TestDatabase, router: Router) -> Relay<SeaOrmStore> {
    Relay::new(SeaOrmStore::new(database.db.clone()), router)
}

/// Counts its calls; each waits for a permit.
#[derive(Clone)]
struct Gate {
    calls: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new(permits: usize) -> Self {
        Self { calls: Arc::default(), open: Arc::new(Semaphore::new(permits)) }
    }

    fn builder(&self) -> RouterBuilder {
        let gate = self.clone();
        Router::builder().on("tests.wait", move |_: OrderPlaced| {
            let gate = gate.clone();
            async move {
                gate.calls.fetch_add(1, SeqCst);
                gate.open.acquire().await.map(tokio::sync::SemaphorePermit::forget)
            }
        })
    }

    fn router(&self) -> Router {
        self.builder().build().unwrap()
    }
}

async fn a_handler_that_runs_for_five_leases_runs_once(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let gate = Gate::new(0);
    let lease = Duration::from_millis(300);
    let config = RelayConfig { lease, handler_timeout: Duration::from_mins(1), ..fast() };
    let owner = Running::start(relay(database, gate.router()).with_config(config.clone()));
    until("the handler runs", || async { gate.calls.load(SeqCst) == 1 }).await;
    // Another relay would take the row over as soon as the lease had ended.
    let other = RelayConfig { name: "other".into(), ..config };
    let other = Running::start(relay(database, gate.router()).with_config(other));
    tokio::time::sleep(lease * 5).await;
    gate.open.add_permits(9);
    until("it is dispatched", || async { subject.row(&envelope).await.status == Status::Dispatched }).await;
    owner.stop().await;
    other.stop().await;
    let row = subject.row(&envelope).await;
    assert_eq!((row.attempts, row.claims, gate.calls.load(SeqCst)), (1, 1, 1));
}

async fn a_batch_that_takes_longer_than_its_lease_is_handled_once_by_two_relays(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(10)).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let lease = Duration::from_secs(1);
    let mut relays = Vec::new();
    for name in ["first", "second"] {
        let calls = calls.clone();
        let slow = move |_: OrderPlaced| {
            let calls = calls.clone();
            async move {
                calls.fetch_add(1, SeqCst);
                tokio::time::sleep(lease / 5).await;
                Ok::<(), HandlerError>(())
            }
        };
        let router = Router::builder().on("tests.slow", slow).build().unwrap();
        let config = RelayConfig { name: name.into(), batch_size: 10, concurrency: 1, lease, ..fast() };
        relays.push(Running::start(relay(database, router).with_config(config)));
    }
    until("all are dispatched", || async {
        database.count("outbox WHERE status = 'dispatched'").await == 10
    })
    .await;
    for relay in relays {
        relay.stop().await;
    }
    assert_eq!(calls.load(SeqCst), 10);
    assert_eq!(database.count("outbox WHERE attempts = 1").await, 10);
}

async fn a_stopping_relay_renews_what_still_runs(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let gate = Gate::new(0);
    let lease = Duration::from_millis(600);
    let config = RelayConfig { lease, handler_timeout: Duration::from_mins(1), ..fast() };
    let owner = Running::start(relay(database, gate.router()).with_config(config.clone()));
    until("the handler runs", || async { gate.calls.load(SeqCst) == 1 }).await;
    let stopping = tokio::spawn(owner.stop());
    let other = RelayConfig { name: "other".into(), ..config };
    let other = Running::start(relay(database, gate.router()).with_config(other));
    tokio::time::sleep(lease * 4).await;
    gate.open.add_permits(9);
    stopping.await.unwrap();
    other.stop().await;
    let row = subject.row(&envelope).await;
    assert_eq!((row.status, row.attempts, gate.calls.load(SeqCst)), (Status::Dispatched, 1, 1));
}

async fn a_handler_whose_lease_is_lost_is_cut_off_and_its_mark_comes_too_late(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let gate = Gate::new(0);
    let config = RelayConfig { lease: Duration::from_millis(500), ..fast() };
    let relay = relay(database, gate.router()).with_config(config);
    let pass = tokio::spawn(async move { relay.pass().await.unwrap() });
    until("the handler runs", || async { gate.calls.load(SeqCst) == 1 }).await;
    // As if another relay had taken it over.
    let (token, owner) = match database.backend {
        outbox_tests::database::Backend::Postgres => ("gen_random_uuid()", "'other'"),
        _ => ("x'00112233445566778899aabbccddeeff'", "'other'"),
    };
    let sql = format!("UPDATE outbox SET lease_token = {token}, claimed_by = {owner}");
    database.db.execute_unprepared(&sql).await.unwrap();
    let theirs = subject.row(&envelope).await;
    let report = pass.await.unwrap();
    assert_eq!((report.lost, report.dispatched), (1, 0), "{report:?}");
    assert_eq!(
        subject.row(&envelope).await.lease.map(|lease| lease.token),
        theirs.lease.map(|lease| lease.token)
    );
}

async fn a_pause_is_followed_by_a_running_relay_and_producers_do_not_notice(database: &TestDatabase) {
    let subject = Sql::new(database);
    let gate = Gate::new(1_000);
    let running = Running::start(relay(database, gate.router()).with_config(fast()));
    let pauses =
        [Pause::All, Pause::Event("orders.order-placed".into()), Pause::Handler("tests.wait".into())];
    let mut dispatched = 0;
    for pause in pauses {
        subject.store().pause(&pause, "ann", None).await.unwrap();
        // A relay that has followed claims nothing that is stored from then on.
        until("the relay follows the pause", || async {
            let envelope = placed(1);
            subject.append(std::slice::from_ref(&envelope)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            subject.row(&envelope).await.claims == 0
        })
        .await;
        let held = subject.append(&placed_many(5)).await;
        assert_eq!(held.len(), 5);
        assert!(database.count("outbox WHERE status = 'pending' AND claims = 0").await >= 6, "{pause}");
        assert!(subject.store().resume(&pause).await.unwrap());
        until("everything flows again", || async {
            database.count("outbox WHERE finished_at IS NULL").await == 0
        })
        .await;
        let now = database.count("outbox WHERE attempts = 1").await;
        assert!(now > dispatched && now == database.count("outbox").await);
        dispatched = now;
    }
    running.stop().await;
}

async fn an_event_that_is_ignored_is_dispatched_without_a_handler(database: &TestDatabase) {
    let subject = Sql::new(database);
    let note = Envelope::new(&NoteTaken { text: "x".into() }).unwrap();
    let gone = Envelope::stored(outbox_core::MessageId::new(), "gone.was-removed".into(), 3, "{}".into());
    let newer = Envelope::stored(outbox_core::MessageId::new(), "gone.was-removed".into(), 4, "{}".into());
    subject.append(&[note.clone(), gone.clone(), newer.clone()]).await;
    let router =
        Router::builder().ignore::<NoteTaken>().ignore_versions("gone.was-removed", 1..=3).build().unwrap();
    assert_eq!(relay(database, router).pass().await.unwrap().dispatched, 2);
    assert_eq!(subject.row(&note).await.status, Status::Dispatched);
    assert_eq!(subject.row(&gone).await.status, Status::Dispatched);
    assert_eq!((subject.row(&newer).await.status, subject.row(&newer).await.attempts), (Status::Pending, 0));
}

async fn rows_are_deleted_when_they_are_dispatched_if_they_are_not_to_be_kept(database: &TestDatabase) {
    let subject = Sql::new(database);
    let kept = Envelope::new(&OrderPlaced { order_id: 1, total_cents: -1 }).unwrap();
    subject.append(&placed_many(9)).await;
    subject.append(std::slice::from_ref(&kept)).await;
    let picky = |event: OrderPlaced| async move {
        if event.total_cents < 0 { Err(HandlerError::terminal("negative")) } else { Ok(()) }
    };
    let router = Router::builder().on("tests.pick", picky).build().unwrap();
    let retention = Retention { dispatched: None, ..Retention::default() };
    let relay = relay(database, router).with_config(RelayConfig { retention, ..RelayConfig::default() });
    let report = relay.pass().await.unwrap();
    assert_eq!((report.dispatched, report.dead), (9, 1));
    assert_eq!(database.count("outbox").await, 1);
    assert_eq!(subject.row(&kept).await.status, Status::Dead);
}

async fn a_running_relay_purges(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(3)).await;
    let (token, rows) = claim(&subject, 2, at(0)).await;
    mark(&subject, token, &rows, &Transition::Dispatched, at(0)).await;
    // More than the retention ago, by the database's clock.
    for sql in ["UPDATE outbox SET finished_at = created_at WHERE status = 'dispatched'"] {
        database.db.execute_unprepared(sql).await.unwrap();
    }
    let retention = Retention { dispatched: Some(Duration::ZERO), ..Retention::default() };
    let gate = Gate::new(0);
    let config = RelayConfig { retention, shutdown_timeout: Duration::ZERO, ..fast() };
    let running = Running::start(relay(database, gate.router()).with_config(config));
    until("the dispatched rows are gone", || async { database.count("outbox").await == 1 }).await;
    running.stop().await;
}

async fn the_history_of_a_row_stays_until_the_row_is_finished_for_good(database: &TestDatabase) {
    let subject = Sql::new(database);
    let failed = || {
        let class = ErrorClass::Terminal;
        let failed = outbox_core::decide::FailedAttempt { handler: None, class, error: "no".into() };
        AttemptOutcome::new(outbox_core::row::Progress::new(), vec![failed])
    };
    let retry = || Transition::Retry { delay: Duration::ZERO, outcome: failed() };
    // In backoff, dead, dispatched after a failure, resolved.
    let lives: [&[Transition]; 4] = [
        &[retry()],
        &[Transition::Dead(failed())],
        &[retry(), Transition::Dispatched],
        &[Transition::Dead(failed())],
    ];
    let mut rows = Vec::new();
    for life in lives {
        let envelope = placed(1);
        let id = subject.append(std::slice::from_ref(&envelope)).await[0];
        for transition in life {
            let (token, claimed) = claim(&subject, 1, at(0)).await;
            let [row] = &claimed[..] else { panic!("{claimed:?}") };
            assert_eq!(row.id, id);
            mark(&subject, token, &claimed, transition, at(0)).await;
        }
        if rows.is_empty() {
            // Out of the way of the next claims.
            database.db.execute_unprepared("UPDATE outbox SET claimed_by = NULL").await.unwrap();
            let (token, claimed) = claim(&subject, 1, at(0)).await;
            let later =
                Transition::Retry { delay: Duration::from_hours(1), outcome: AttemptOutcome::default() };
            mark(&subject, token, &claimed, &later, at(0)).await;
        }
        rows.push(id);
    }
    subject.store().skip(rows[3], "ann", None, at(1)).await.unwrap();
    let purge =
        |now| Purge { finished: Finished::History, older_than: Duration::from_secs(100), limit: 99, now };
    assert_eq!(subject.store().purge(&purge(at(100))).await.unwrap().rows, 0);
    assert_eq!(subject.store().purge(&purge(at(101))).await.unwrap().rows, 2);
    let left: Vec<_> = subject.history().await.iter().map(|entry| entry.id).collect();
    assert_eq!(left, rows[..2]);
}

async fn resolved_dead_letters_are_purged_only_when_asked(database: &TestDatabase) {
    let subject = Sql::new(database);
    let ids = subject.append(&placed_many(2)).await;
    let (token, rows) = claim(&subject, 2, at(0)).await;
    let failed =
        outbox_core::decide::FailedAttempt { handler: None, class: ErrorClass::Terminal, error: "no".into() };
    let dead = Transition::Dead(AttemptOutcome::new(outbox_core::row::Progress::new(), vec![failed]));
    mark(&subject, token, &rows, &dead, at(0)).await;
    subject.store().skip(ids[0], "ann", None, at(50)).await.unwrap();
    let purge =
        |finished, now| Purge { finished, older_than: Duration::from_secs(10), limit: 99, now: at(now) };
    assert_eq!(subject.store().purge(&purge(Finished::Dispatched, 1_000)).await.unwrap().rows, 0);
    assert_eq!(subject.store().purge(&purge(Finished::Resolved, 60)).await.unwrap().rows, 0);
    assert_eq!(subject.store().purge(&purge(Finished::Resolved, 61)).await.unwrap().rows, 1);
    assert_eq!(database.count(&format!("outbox WHERE id = {}", ids[1])).await, 1);
}

async fn one_purge_runs_at_a_time(database: &TestDatabase) {
    if !database.backend.has_concurrent_writers() {
        return; // There is one writer, whatever it does.
    }
    let subject = Sql::new(database);
    subject.append(&placed_many(1)).await;
    let (token, rows) = claim(&subject, 1, at(0)).await;
    mark(&subject, token, &rows, &Transition::Dispatched, at(0)).await;
    let other = sea_orm::TransactionTrait::begin(&database.db).await.unwrap();
    other
        .execute_unprepared("UPDATE outbox_control SET reason = 'a purge' WHERE kind = 'lock'")
        .await
        .unwrap();
    let purge =
        Purge { finished: Finished::Dispatched, older_than: Duration::ZERO, limit: 9, now: at(1_000) };
    let purged = subject.store().purge(&purge).await.unwrap();
    assert_eq!((purged.rows, purged.busy), (0, true));
    other.rollback().await.unwrap();
    assert_eq!(subject.store().purge(&purge).await.unwrap().rows, 1);
}

async fn relays_know_of_each_other_while_they_run(database: &TestDatabase) {
    let subject = Sql::new(database);
    let gate = Gate::new(9);
    let first = Running::start(
        relay(database, gate.router()).with_config(RelayConfig { name: "a".into(), ..fast() }),
    );
    let router = gate.builder().on("tests.other", |_: OrderPlaced| async { Ok::<(), HandlerError>(()) });
    let second =
        relay(database, router.build().unwrap()).with_config(RelayConfig { name: "b".into(), ..fast() });
    let second = Running::start(second);
    let relays = async || subject.store().control(None).await.unwrap().relays;
    until("both are there", || async { relays().await.len() == 2 }).await;
    let relays_found = relays().await;
    let ids =
        |n: usize| relays_found[n].handlers["orders.order-placed.v1"].iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        (ids(0), ids(1)),
        (vec!["tests.wait".to_owned()], vec!["tests.other".into(), "tests.wait".into()])
    );
    first.stop().await;
    second.stop().await;
    assert_eq!(relays().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_ends_the_handler_with_it() {
    let store = MemoryStore::default();
    store.append(&[placed(1)]).unwrap();
    let judge = |asked: Asked<'_>| matches!(asked, Asked::Renew).then_some(StoreErrorKind::Other);
    let deadline = Arc::new(Mutex::new(None));
    let handler = {
        let deadline = deadline.clone();
        move |_: OrderPlaced, cx: MessageContext| {
            *deadline.lock().unwrap() = Some((cx.lease_ends(), cx.deadline()));
            std::future::pending::<Result<(), HandlerError>>()
        }
    };
    let router = Router::builder().on("tests.never-end", handler).build().unwrap();
    let timeout = Duration::from_hours(2);
    let config = RelayConfig { handler_timeout: timeout, ..RelayConfig::default() };
    let relay = Relay::new(Interposed::new(store.clone(), judge), router).with_config(config);
    let report = relay.pass_at(at(0)).await.unwrap();
    assert_eq!(report.retried, 1);
    assert_eq!(store.history()[0].failed.class, ErrorClass::LeaseExpired);
    let (lease_ends, deadline) = deadline.lock().unwrap().unwrap();
    assert!(deadline > lease_ends && deadline <= Instant::now() + timeout);
}

async fn a_row_that_was_left_behind_is_not_taken_over_while_its_event_is_paused(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    claim(&subject, 1, at(-1_000)).await;
    let accept = |_: OrderPlaced| async { Ok::<(), HandlerError>(()) };
    let relay = relay(database, Router::builder().on("tests.accept", accept).build().unwrap());
    for pause in
        [Pause::Event("orders.order-placed".into()), Pause::Handler("tests.accept".into()), Pause::All]
    {
        subject.store().pause(&pause, "ann", None).await.unwrap();
        assert_eq!(relay.pass_at(at(0)).await.unwrap().claimed, 0, "{pause} is paused");
        subject.store().resume(&pause).await.unwrap();
    }
    let report = relay.pass_at(at(0)).await.unwrap();
    assert_eq!((report.taken_over, report.dispatched), (1, 1));
}

/// The relay's own view of a lease begins before the claim is sent: it must end no later than the database's.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_long_on_its_way_has_used_up_its_lease() {
    let store = MemoryStore::default();
    store.append(&placed_many(2)).unwrap();
    let config = RelayConfig::default();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let handle = move |_: OrderPlaced| {
        counted.fetch_add(1, SeqCst);
        async { Ok::<(), HandlerError>(()) }
    };
    let router = Router::builder().on("tests.handle", handle).build().unwrap();
    let slow = Interposed::with_slow_claims(store.clone(), config.lease);
    let report = Relay::new(slow, router.clone()).with_config(config.clone()).pass().await.unwrap();
    assert_eq!(
        (report.claimed, report.released, calls.load(SeqCst)),
        (2, 2, 0),
        "too little of the lease is left"
    );
    let report =
        Relay::new(Interposed::with_slow_claims(store, config.lease / 4), router).pass().await.unwrap();
    assert_eq!((report.dispatched, calls.load(SeqCst)), (2, 2));
}

use outbox_core::{
    ErrorClass, HandlerError, Relay, RelayConfig, Router, Status,
    store::{OutboxOperator, Pause},
    testing::MemoryStore,
};
use outbox_tests::{
    conformance::at,
    events::{OrderPlaced, placed, placed_many},
    running::Running,
    wait::until,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

#[tokio::test(start_paused = true)]
async fn while_what_a_handler_needs_is_down_no_attempt_is_used_and_only_probes_are_claimed() {
    let store = MemoryStore::default();
    store.append(&placed_many(50)).unwrap();
    let (down, calls) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (down, calls) = (down.clone(), calls.clone());
        move |_: OrderPlaced| {
            calls.fetch_add(1, SeqCst);
            let down = down.load(SeqCst);
            async move { if down { Err(HandlerError::unavailable("the broker is away")) } else { Ok(()) } }
        }
    };
    let router = Router::builder().on("tests.publish", handler).build().unwrap();
    let running = Running::start(
        Relay::new(store.clone(), router)
            .with_config(RelayConfig { concurrency: 4, ..RelayConfig::default() }),
    );
    tokio::time::sleep(Duration::from_mins(30)).await;
    let called = calls.load(SeqCst);
    assert!((20..=60).contains(&called), "it is probed about once a minute, and was called {called} times");
    let rows = store.rows();
    assert!(rows.iter().all(|row| row.status == Status::Pending && row.attempts == 0), "{rows:?}");
    assert!(
        rows.iter()
            .any(|row| row.last_error.as_ref().is_some_and(|(class, _)| *class == ErrorClass::Unavailable))
    );
    assert_eq!(store.history(), [], "an attempt that was given back is no failed attempt");
    down.store(false, SeqCst);
    until("everything flows again", || async {
        store.rows().iter().all(|row| row.status == Status::Dispatched)
    })
    .await;
    assert!(store.rows().iter().all(|row| row.attempts == 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_down_or_paused_does_not_hold_up_the_others_of_the_event() {
    let store = MemoryStore::default();
    store.append(&placed_many(5)).unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let works = {
        let done = done.clone();
        move |_: OrderPlaced| {
            done.fetch_add(1, SeqCst);
            async { Ok::<(), HandlerError>(()) }
        }
    };
    let router = Router::builder()
        .on("tests.publish", |_: OrderPlaced| async { Err::<(), _>(HandlerError::unavailable("away")) })
        .on("tests.store", works)
        .on("tests.paused", |_: OrderPlaced| async { Err::<(), _>(HandlerError::terminal("never called")) })
        .build()
        .unwrap();
    store.pause(&Pause::Handler("tests.paused".into()), "ann", None).await.unwrap();
    let running = Running::start(Relay::new(store.clone(), router));
    tokio::time::sleep(Duration::from_mins(5)).await;
    running.stop().await;
    assert_eq!(done.load(SeqCst), 5, "once for each row");
    for row in store.rows() {
        assert_eq!((row.status, row.attempts), (Status::Pending, 0));
        assert_eq!(row.progress.keys().collect::<Vec<_>>(), ["tests.store"]);
    }
}

#[tokio::test]
async fn an_effect_that_may_have_happened_is_not_repeated() {
    let store = MemoryStore::default();
    let id = store.append(&[placed(1)]).unwrap()[0];
    let handler = |_: OrderPlaced| async { Err::<(), _>(HandlerError::uncertain("no answer")) };
    let router = Router::builder().on("tests.charge", handler).build().unwrap();
    assert_eq!(Relay::new(store.clone(), router).pass_at(at(0)).await.unwrap().dead, 1);
    let row = &store.rows()[0];
    assert_eq!((row.id, row.last_error.clone()), (id, Some((ErrorClass::Uncertain, "no answer".into()))));
}

use super::*;
use outbox_core::{MessageContext, Status};
use outbox_tests::{
    database::{Backend, connect},
    for_each_database,
    proxy::Proxy,
    running::Running,
    wait::until,
};
use sea_orm::TransactionTrait;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};
use tokio::sync::Barrier;

for_each_database! {
    a_commit_whose_answer_is_lost_is_decided_by_the_progress,
    what_is_committed_in_doubt_survives_the_mark_of_another_handler,
    a_commit_that_is_cut_off_has_its_effect_at_most_once,
    connections_that_break_repeat_no_effect,
    a_handler_whose_lease_was_taken_undoes_its_effect,
    one_message_at_two_relays_at_the_same_instant_has_one_effect,
    a_deadlock_between_two_handlers_is_tried_again,
    a_deadlock_that_is_passed_over_stores_nothing_by_halves,
}

async fn a_commit_whose_answer_is_lost_is_decided_by_the_progress(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // No wire that could break; commits that are cut off are tried below.
    }
    let (mut effects, order) = Effects::of_one(database).await;
    let proxy = Proxy::before(&database.url).await;
    effects.pool = connect(&proxy.url, 2).await;
    proxy.lose_the_next_commits_answer();
    assert_eq!(effects.pass(count).await.retried, 1);
    let row = effects.row(&order).await;
    assert_eq!((row.status, row.attempts, effects.count().await), (Status::Pending, 1, 1));
    assert_eq!(effects.pass(count).await.dispatched, 1);
    assert_eq!((effects.row(&order).await.attempts, effects.count().await), (2, 1));
}

/// The relay knows only what the row held when it was claimed, and what was reported since.
async fn what_is_committed_in_doubt_survives_the_mark_of_another_handler(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return;
    }
    let (mut effects, order) = Effects::of_one(database).await;
    let proxy = Proxy::before(&database.url).await;
    effects.pool = connect(&proxy.url, 2).await;
    let ran = Arc::new(AtomicU32::new(0));
    let counted = ran.clone();
    let other = move |_: OrderPlaced| {
        counted.fetch_add(1, SeqCst);
        async { Fine::Ok(()) }
    };
    let relay = effects.relay_of(effects.router().on("tests.effect", count).on("tests.other", other));
    proxy.lose_the_next_commits_answer();
    assert_eq!(relay.pass().await.unwrap().retried, 1);
    let row = effects.row(&order).await;
    assert_eq!(row.progress.keys().collect::<Vec<_>>(), ["tests.effect", "tests.other"]);
    assert_eq!(relay.pass().await.unwrap().dispatched, 1);
    assert_eq!((effects.count().await, ran.load(SeqCst)), (1, 1));
}

/// The time limit falls at each moment of the transaction in turn.
async fn a_commit_that_is_cut_off_has_its_effect_at_most_once(database: &TestDatabase) {
    let effects = Effects::new(database).await;
    let mut orders = 0;
    for micros in (200..6_000).step_by(200) {
        orders += 1;
        let order = placed(orders);
        effects.subject.append(std::slice::from_ref(&order)).await;
        let config = RelayConfig { handler_timeout: Duration::from_micros(micros), ..impatient() };
        let report = effects.relay(count).with_config(config).pass().await.unwrap();
        assert_eq!(report.retried + report.dispatched, 1);
        until("it is dispatched", || async {
            effects.pass(count).await;
            effects.row(&order).await.status == Status::Dispatched
        })
        .await;
        assert_eq!(effects.count().await, i64::from(orders), "{micros} µs");
    }
}

async fn connections_that_break_repeat_no_effect(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return;
    }
    let mut effects = Effects::new(database).await;
    let proxy = Proxy::before(&database.url).await;
    effects.pool = connect(&proxy.url, 4).await;
    let orders: Vec<_> = (1..=200).map(placed).collect();
    effects.subject.append(&orders).await;
    let config = RelayConfig {
        retry: RetryPolicy { max_attempts: 1_000, cap: Duration::from_millis(20), ..impatient().retry },
        ..impatient()
    };
    let relay = Running::start(effects.relay(count).with_config(config));
    for n in 1..=6 {
        until("some are counted", || async { effects.count().await >= n * 20 }).await;
        proxy.cut();
        proxy.mend();
        proxy.lose_the_next_commits_answer();
    }
    until("all are dispatched", || async {
        database.count("outbox WHERE status = 'dispatched'").await == 200
    })
    .await;
    relay.stop().await;
    assert_eq!(effects.count().await, 200);
    assert_eq!(database.count("(SELECT DISTINCT order_id FROM effects) AS seen").await, 200);
}

/// By an update from elsewhere, as another relay's claim would be.
async fn a_handler_whose_lease_was_taken_undoes_its_effect(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let other = database.db.clone();
    let robbed = move |event: OrderPlaced, tx: Tx, cx: MessageContext| {
        let other = other.clone();
        async move {
            if cx.attempt() == 1 {
                // Before the transaction begins: on SQLite nobody can afterwards.
                let sql = "UPDATE outbox SET lease_token = message_id, claims = claims + 1";
                other.execute_unprepared(sql).await?;
            }
            Fine::Ok(effect(tx.begin().await?, &event, "robbed").await?)
        }
    };
    let report = effects.pass(robbed.clone()).await;
    assert_eq!((report.retried, report.lost, effects.count().await), (1, 1, 0));
    let row = effects.row(&order).await;
    assert!(row.progress.is_empty() && row.last_error.is_none(), "it is somebody else's: {row:?}");
    let later = chrono::Utc::now() + Duration::from_hours(1);
    assert_eq!(effects.relay(robbed).pass_at(Some(later)).await.unwrap().dispatched, 1);
    assert_eq!(effects.count().await, 1);
}

/// The second takes the row over while the first is in its transaction, and both have had their effect when they go on.
async fn one_message_at_two_relays_at_the_same_instant_has_one_effect(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // The second transaction waits for the first.
    }
    for _ in 0..10 {
        let order = placed(1);
        let effects = match database.count("outbox").await {
            0 => Effects::new(database).await,
            _ => Effects { database, subject: Sql::new(database), pool: database.connect().await },
        };
        let before = effects.count().await;
        effects.subject.append(std::slice::from_ref(&order)).await;
        let both_in = Arc::new(Barrier::new(2));
        let handle = move |event: OrderPlaced, tx: Tx| {
            let both_in = both_in.clone();
            async move {
                effect(tx.begin().await?, &event, "both").await?;
                both_in.wait().await;
                Fine::Ok(())
            }
        };
        let (first, second) = (effects.relay(handle.clone()), effects.relay(handle));
        let later = chrono::Utc::now() + Duration::from_hours(1);
        let take_over = async {
            until("the first has claimed", || async { effects.row(&order).await.status == Status::Claimed })
                .await;
            second.pass_at(Some(later)).await.unwrap()
        };
        let (first, second) = tokio::join!(first.pass(), take_over);
        assert_eq!((first.unwrap().lost, second.dispatched, second.lost), (1, 1, 0));
        assert_eq!(effects.count().await, before + 1);
        effects.pool.close().await.unwrap();
    }
}

/// Two rows that each handler locks in its own order.
async fn prepare_deadlock(effects: &Effects<'_>) {
    for sql in
        ["CREATE TABLE two (id INT PRIMARY KEY, n INT)", "INSERT INTO two (id, n) VALUES (1, 0), (2, 0)"]
    {
        effects.database.db.execute_unprepared(sql).await.unwrap();
    }
    effects.subject.append(&[placed(1), placed(2)]).await;
}

async fn add(tx: &OutboxTransaction, id: i32) -> Result<(), DbErr> {
    tx.execute_unprepared(&format!("UPDATE two SET n = n + 1 WHERE id = {id}")).await.map(drop)
}

/// Locks a row of its own, and goes on for the other's once both have one.
async fn lock_own(
    tx: &OutboxTransaction,
    event: &OrderPlaced,
    cx: &MessageContext,
    both_locked: &Barrier,
) -> Result<(), DbErr> {
    add(tx, event.order_id).await?;
    if cx.attempt() == 1 {
        both_locked.wait().await;
    }
    Ok(())
}

async fn a_deadlock_between_two_handlers_is_tried_again(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // One writer cannot deadlock.
    }
    let effects = Effects::new(database).await;
    prepare_deadlock(&effects).await;
    let both_locked = Arc::new(Barrier::new(2));
    let crossing = move |event: OrderPlaced, tx: Tx, cx: MessageContext| {
        let both_locked = both_locked.clone();
        async move {
            let tx = tx.begin().await?;
            lock_own(tx, &event, &cx, &both_locked).await?;
            add(tx, 3 - event.order_id).await?;
            Fine::Ok(())
        }
    };
    let report = effects.pass(crossing.clone()).await;
    assert_eq!((report.dispatched, report.retried), (1, 1), "one of the two is the victim");
    assert_eq!(effects.pass(crossing).await.dispatched, 1);
    assert_eq!(database.count("two WHERE n = 2").await, 2);
}

/// On MySQL a deadlock ends the transaction, and what comes next would be stored by itself.
async fn a_deadlock_that_is_passed_over_stores_nothing_by_halves(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return;
    }
    let effects = Effects::new(database).await;
    prepare_deadlock(&effects).await;
    let both_locked = Arc::new(Barrier::new(2));
    let stubborn = move |event: OrderPlaced, tx: Tx, cx: MessageContext| {
        let both_locked = both_locked.clone();
        async move {
            let tx = tx.begin().await?;
            lock_own(tx, &event, &cx, &both_locked).await?;
            drop(add(tx, 3 - event.order_id).await);
            drop(effect(tx, &event, "stubborn").await);
            Fine::Ok(())
        }
    };
    let report = effects.pass(stubborn.clone()).await;
    assert_eq!((report.dispatched, report.retried), (1, 1));
    assert_eq!(effects.count().await, 1, "nothing of the victim is stored");
    assert_eq!(effects.pass(stubborn).await.dispatched, 1);
    assert_eq!((effects.count().await, database.count("two WHERE n = 2").await), (2, 2));
    // The connection is good for further transactions.
    effects.pool.begin().await.unwrap().rollback().await.unwrap();
}

use super::*;
use outbox_core::Status;
use outbox_tests::{database::Backend, for_each_database};
use sea_orm::TransactionTrait;
use std::sync::{Arc, Mutex};

for_each_database! {
    every_failure_undoes_the_effect,
    a_transaction_that_the_handler_ends_itself_is_found_out,
    a_statement_that_commits_by_itself_is_found_out,
    an_error_that_is_passed_over_cannot_be_committed,
    a_task_that_still_holds_the_transaction_fails_the_attempt,
    a_savepoint_that_is_still_open_fails_the_attempt,
    a_handler_sees_what_others_commit_whatever_the_servers_default_is,
}

async fn every_failure_undoes_the_effect(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let config = RelayConfig { handler_timeout: Duration::from_millis(500), ..impatient() };
    for (attempt, way) in ["error", "panic", "hang", "refusal"].into_iter().enumerate() {
        let fail = move |event: OrderPlaced, tx: Tx| async move {
            effect(tx.begin().await?, &event, way).await?;
            match way {
                "error" => Err(HandlerError::transient("no")),
                "panic" => panic!("no"),
                "hang" => std::future::pending().await,
                _ => Fine::Err(HandlerError::terminal("never")),
            }
        };
        let report = effects.relay(fail).with_config(config.clone()).pass().await.unwrap();
        assert_eq!((report.retried, report.dead), if attempt < 3 { (1, 0) } else { (0, 1) }, "{way}");
        // The connection is usable again, and its locks are gone.
        let tx = outbox_tests::database::begin_immediate(&effects.pool).await;
        tx.execute_unprepared("UPDATE outbox SET claims = claims").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(effects.count().await, 0, "{way}");
    }
    assert!(
        effects
            .row(&order)
            .await
            .progress
            .values()
            .all(|state| *state != outbox_core::row::HandlerState::Done)
    );
}

/// What of it is stored depends on the statement, so the message must not be repeated blindly.
async fn a_transaction_that_the_handler_ends_itself_is_found_out(database: &TestDatabase) {
    for end in ["COMMIT", "ROLLBACK", "ROLLBACK; BEGIN"] {
        if database.backend == Backend::MySql && end.contains(';') {
            continue; // One statement at a time.
        }
        let effects = match database.count("outbox").await {
            0 => Effects::new(database).await,
            _ => Effects { database, subject: Sql::new(database), pool: database.connect().await },
        };
        let order = placed(1);
        effects.subject.append(std::slice::from_ref(&order)).await;
        let ends = move |event: OrderPlaced, tx: Tx| async move {
            let tx = tx.begin().await?;
            effect(tx, &event, "ends").await?;
            tx.execute_unprepared(end).await?;
            Fine::Ok(effect(tx, &event, "after").await?)
        };
        assert_eq!(effects.pass(ends).await.dead, 1, "{end}");
        let (class, text) = effects.error(&order).await;
        assert_eq!(class, ErrorClass::Uncertain, "{end}: {text}");
        assert!(text.contains("ended the transaction that it was lent"), "{text}");
        // Nobody is harmed by what is left of its connection.
        effects.subject.append(&[placed(2)]).await;
        let before = effects.count().await;
        assert_eq!(effects.pass(count).await.dispatched, 1, "{end}");
        assert_eq!(effects.count().await, before + 1, "{end}");
        effects.pool.close().await.unwrap();
    }
}

async fn a_statement_that_commits_by_itself_is_found_out(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let creates = |event: OrderPlaced, tx: Tx| async move {
        let tx = tx.begin().await?;
        effect(tx, &event, "creates").await?;
        tx.execute_unprepared("CREATE TABLE made_by_a_handler (n INT)").await?;
        Fine::Ok(())
    };
    let report = effects.pass(creates).await;
    if database.backend == Backend::MySql {
        assert_eq!((report.dead, effects.error(&order).await.0), (1, ErrorClass::Uncertain));
    } else {
        assert_eq!((report.dispatched, effects.count().await), (1, 1), "it is part of the transaction there");
    }
}

async fn an_error_that_is_passed_over_cannot_be_committed(database: &TestDatabase) {
    let (effects, order) = Effects::of_one(database).await;
    let passes_over = |event: OrderPlaced, tx: Tx| async move {
        let tx = tx.begin().await?;
        effect(tx, &event, "first").await?;
        assert!(tx.execute_unprepared("INSERT INTO no_such_table VALUES (1)").await.is_err());
        Fine::Ok(())
    };
    let report = effects.pass(passes_over).await;
    if database.backend == Backend::Postgres {
        assert_eq!((report.retried, effects.count().await), (1, 0));
        assert_eq!(effects.error(&order).await.0, ErrorClass::Transient);
    } else {
        assert_eq!((report.dispatched, effects.count().await), (1, 1), "only the statement was undone");
    }
}

async fn a_task_that_still_holds_the_transaction_fails_the_attempt(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // What is held is the only writer, so nothing can be marked.
    }
    let (effects, order) = Effects::of_one(database).await;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let ended = Arc::new(Mutex::new(Some(ended)));
    let spawns = move |event: OrderPlaced, tx: Tx| {
        let ended = ended.lock().unwrap().take();
        async move {
            effect(tx.begin().await?, &event, "spawns").await?;
            tokio::spawn(async move {
                drop(ended.unwrap().await);
                drop(tx);
            });
            Fine::Ok(())
        }
    };
    assert_eq!(effects.pass(spawns).await.retried, 1);
    assert!(effects.error(&order).await.1.contains("let the handler await the task"));
    drop(end);
    assert_eq!(effects.pass(count).await.dispatched, 1);
    assert_eq!(effects.count().await, 1);
}

/// SeaORM would release the savepoint instead of committing, and say that all went well.
async fn a_savepoint_that_is_still_open_fails_the_attempt(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // What is held is the only writer, so nothing can be marked.
    }
    let (effects, order) = Effects::of_one(database).await;
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let keeps = move |event: OrderPlaced, tx: Tx| {
        let keep = keep.clone();
        async move {
            let savepoint = tx.begin().await?.begin().await?;
            effect(&savepoint, &event, "keeps").await?;
            *keep.lock().unwrap() = Some(savepoint);
            Fine::Ok(())
        }
    };
    assert_eq!(effects.pass(keeps).await.retried, 1);
    assert!(effects.error(&order).await.1.contains("savepoint was still open"));
    let savepoint = kept.lock().unwrap().take().unwrap();
    assert!(savepoint.commit().await.is_err(), "it cannot be committed behind everybody's back");
    assert_eq!(effects.pass(count).await.dispatched, 1);
    assert_eq!(effects.count().await, 1);
}

async fn a_handler_sees_what_others_commit_whatever_the_servers_default_is(database: &TestDatabase) {
    let (mut effects, order) = Effects::of_one(database).await;
    match database.backend {
        Backend::Sqlite => return, // Nobody else can commit meanwhile.
        Backend::Postgres => {
            let name = database.url.rsplit_once('/').unwrap().1;
            let sql = format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'");
            database.db.execute_unprepared(&sql).await.unwrap();
            effects.pool = database.connect().await;
        }
        // Its default is REPEATABLE READ.
        Backend::MySql => {}
    }
    let other = database.db.clone();
    let looks_twice = move |event: OrderPlaced, tx: Tx| {
        let other = other.clone();
        async move {
            let tx = tx.begin().await?;
            let before = outbox_tests::database::count(tx, "effects").await?;
            other.execute_unprepared("INSERT INTO effects (handler, order_id) VALUES ('other', 1)").await?;
            assert_eq!(outbox_tests::database::count(tx, "effects").await?, before + 1);
            Fine::Ok(effect(tx, &event, "looks").await?)
        }
    };
    assert_eq!(effects.pass(looks_twice).await.dispatched, 1);
    assert_eq!(effects.row(&order).await.status, Status::Dispatched);
}

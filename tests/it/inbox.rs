use outbox_core::MessageId;
use outbox_seaorm::{Inbox, InboxError, InboxPurge, Once, OutboxTransaction, SaveError, TableNames, migrate};
use outbox_tests::{
    database::{Backend, TestDatabase, begin_immediate},
    entities::{Order, notes},
    for_each_database,
    statements::Statements,
    wait::until,
};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DbErr, Set, TransactionTrait, prelude::Uuid};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Barrier, oneshot},
    task::JoinSet,
};

for_each_database! {
    a_repeated_message_has_no_second_effect,
    the_effect_and_its_record_share_the_callers_transaction,
    an_effect_that_fails_leaves_no_record_and_the_caller_goes_on,
    two_consumers_handle_one_message_once_each,
    copies_at_the_same_instant_have_one_effect,
    copies_in_the_callers_transactions_have_one_effect,
    copies_that_wait_for_one_that_fails_have_one_effect,
    of_many_messages_the_effect_sees_the_new_ones_in_their_order,
    many_messages_take_one_statement_where_the_database_returns_rows,
    overlapping_batches_handle_each_message_once,
    a_name_that_not_every_database_keeps_is_refused_before_the_database_is_asked,
    a_missing_table_says_what_to_do,
    the_purge_deletes_old_records_and_no_more_than_its_limit,
    what_the_inbox_does_not_remember_is_no_duplicate,
    two_inboxes_with_names_of_their_own_know_nothing_of_each_other,
    the_effect_may_be_the_save_of_an_aggregate,
}

/// Something that can be counted.
async fn effect(tx: &impl ConnectionTrait) -> Result<(), DbErr> {
    let note = notes::ActiveModel { title: Set(Uuid::now_v7().to_string()), body: Set("x".into()) };
    note.insert(tx).await.map(drop)
}

async fn counts(database: &TestDatabase) -> (i64, i64) {
    (database.count("notes").await, database.count("inbox").await)
}

const INBOX: Inbox = Inbox::new(TableNames::new());

async fn a_repeated_message_has_no_second_effect(database: &TestDatabase) {
    let (id, other) = (MessageId::new(), MessageId::new());
    for expected in [Once::Done(()), Once::Duplicate, Once::Duplicate] {
        assert_eq!(INBOX.once_in(&database.db, "a", id, async |tx| effect(tx).await).await, Ok(expected));
    }
    // Twice in one transaction, too.
    let tx = begin_immediate(&database.db).await;
    for expected in [Once::Done(7), Once::Duplicate] {
        let once = INBOX.once(&tx, "a", other, async |tx| effect(tx).await.map(|()| 7)).await;
        assert_eq!(once, Ok(expected));
    }
    tx.commit().await.unwrap();
    assert_eq!(counts(database).await, (2, 2));
}

async fn the_effect_and_its_record_share_the_callers_transaction(database: &TestDatabase) {
    let id = MessageId::new();
    for way in ["rollback", "drop", "commit"] {
        let tx = begin_immediate(&database.db).await;
        let once = INBOX.once(&tx, "a", id, async |tx| effect(tx).await).await;
        assert_eq!(once, Ok(Once::Done(())), "{way}: what was undone before is no duplicate");
        match way {
            "rollback" => tx.rollback().await.unwrap(),
            "drop" => drop(tx),
            _ => tx.commit().await.unwrap(),
        }
        let expected = i64::from(way == "commit");
        assert_eq!(counts(database).await, (expected, expected), "{way}");
    }
}

async fn an_effect_that_fails_leaves_no_record_and_the_caller_goes_on(database: &TestDatabase) {
    let id = MessageId::new();
    let fails = async |tx: &_, at_the_database: bool| {
        effect(tx).await?;
        if at_the_database {
            // On PostgreSQL such a failure spoils the transaction, up to a savepoint.
            ConnectionTrait::execute_unprepared(tx, "INSERT INTO nowhere VALUES (1)").await?;
        }
        Err::<(), _>(DbErr::Custom("mine".to_owned()))
    };
    for at_the_database in [false, true] {
        let failed = INBOX.once_in(&database.db, "a", id, async |tx: &OutboxTransaction| {
            effect(tx).await?;
            Err::<(), _>(DbErr::Custom("mine".to_owned()))
        });
        assert_eq!(failed.await, Err(DbErr::Custom("mine".to_owned())));
        let tx = begin_immediate(&database.db).await;
        assert!(INBOX.once(&tx, "a", id, async |tx| fails(tx, at_the_database).await).await.is_err());
        effect(&tx).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(counts(database).await, (2, 0), "only what the caller itself wrote");
    assert_eq!(INBOX.once_in(&database.db, "a", id, async |tx| effect(tx).await).await, Ok(Once::Done(())));
}

async fn two_consumers_handle_one_message_once_each(database: &TestDatabase) {
    let id = MessageId::new();
    let mut copies = JoinSet::new();
    let start = Arc::new(Barrier::new(8));
    for copy in 0..8 {
        let (db, start) = (database.db.clone(), start.clone());
        // Names that a careless collation would take for one.
        let consumer = ["mail", "Mail"][copy % 2];
        copies.spawn(async move {
            start.wait().await;
            INBOX.once_in(&db, consumer, id, async |tx| effect(tx).await).await.map(Once::done)
        });
    }
    let done = copies.join_all().await.into_iter().filter_map(Result::unwrap).count();
    assert_eq!((done, counts(database).await), (2, (2, 2)));
}

async fn copies_at_the_same_instant_have_one_effect(database: &TestDatabase) {
    for _ in 0..5 {
        let (before, _) = counts(database).await;
        let (id, start) = (MessageId::new(), Arc::new(Barrier::new(8)));
        let mut copies = JoinSet::new();
        for _ in 0..8 {
            let (db, start) = (database.db.clone(), start.clone());
            copies.spawn(async move {
                start.wait().await;
                INBOX.once_in(&db, "a", id, async |tx| effect(tx).await).await.map(Once::done)
            });
        }
        let done = copies.join_all().await.into_iter().filter_map(Result::unwrap).count();
        assert_eq!((done, counts(database).await.0 - before), (1, 1));
    }
}

async fn copies_in_the_callers_transactions_have_one_effect(database: &TestDatabase) {
    let (id, start) = (MessageId::new(), Arc::new(Barrier::new(6)));
    let mut copies = JoinSet::new();
    for _ in 0..6 {
        let (db, start) = (database.db.clone(), start.clone());
        copies.spawn(async move {
            start.wait().await;
            let tx = begin_immediate(&db).await;
            let once = INBOX.once(&tx, "a", id, async |tx| effect(tx).await).await;
            tx.commit().await?;
            once.map(Once::done)
        });
    }
    let done = copies.join_all().await.into_iter().filter_map(Result::unwrap).count();
    assert_eq!((done, counts(database).await), (1, (1, 1)));
}

/// How many sessions of this database wait for a record to be written; on SQLite they wait for the writer unseen.
async fn waiting(database: &TestDatabase) -> i64 {
    match database.backend {
        Backend::Postgres => {
            let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            database.count(waits).await
        }
        Backend::MySql => {
            let waits =
                "information_schema.processlist WHERE db = DATABASE() AND info LIKE 'INSERT INTO `inbox`%'";
            database.count(waits).await
        }
        Backend::Sqlite => 5,
    }
}

async fn copies_that_wait_for_one_that_fails_have_one_effect(database: &TestDatabase) {
    let id = MessageId::new();
    let db = database.db.clone();
    let (recorded, is_recorded) = oneshot::channel::<()>();
    let (fail, must_fail) = oneshot::channel::<()>();
    let first = tokio::spawn(async move {
        let fails = async |tx: &OutboxTransaction| {
            effect(tx).await?;
            recorded.send(()).unwrap();
            drop(must_fail.await);
            Err::<(), _>(DbErr::Custom("mine".to_owned()))
        };
        INBOX.once_in(&db, "a", id, fails).await
    });
    is_recorded.await.unwrap();
    let mut copies = JoinSet::new();
    for _ in 0..5 {
        let db = database.db.clone();
        copies.spawn(async move {
            INBOX.once_in(&db, "a", id, async |tx| effect(tx).await).await.map(Once::done)
        });
    }
    until("all copies wait", || async { waiting(database).await == 5 }).await;
    fail.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Err(DbErr::Custom("mine".to_owned())));
    // On MySQL they deadlock now, and all but one begin anew.
    let done = copies.join_all().await.into_iter().filter_map(Result::unwrap).count();
    assert_eq!((done, counts(database).await), (1, (1, 1)));
}

async fn of_many_messages_the_effect_sees_the_new_ones_in_their_order(database: &TestDatabase) {
    let mut ids: Vec<_> = (0..4).map(|_| MessageId::new()).collect();
    ids.reverse();
    let tx = begin_immediate(&database.db).await;
    let seen = async |_: &_, fresh: &[MessageId]| Ok::<_, InboxError>(fresh.to_vec());
    let once = INBOX.once_many(&tx, "a", &[ids[1], ids[2], ids[1]], seen).await.unwrap();
    assert_eq!(once, Once::Done(vec![ids[1], ids[2]]));
    let once = INBOX.once_many(&tx, "a", &ids, seen).await.unwrap();
    assert_eq!(once, Once::Done(vec![ids[0], ids[3]]));
    assert!(INBOX.once_many(&tx, "a", &ids, seen).await.unwrap().is_duplicate());
    assert!(INBOX.once_many(&tx, "a", &[], seen).await.unwrap().is_duplicate());
    let fails = async |_: &_, _: &[MessageId]| Err::<(), _>(DbErr::Custom("mine".to_owned()));
    let more = [ids[0], MessageId::new()];
    INBOX.once_many(&tx, "a", &more, fails).await.unwrap_err();
    tx.commit().await.unwrap();
    assert_eq!(database.count("inbox").await, 4);
}

async fn many_messages_take_one_statement_where_the_database_returns_rows(database: &TestDatabase) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let ids: Vec<_> = (0..100).map(|_| MessageId::new()).collect();
    let done = OutboxTransaction::run(&db, async |tx| {
        INBOX.once_many(tx, "a", &ids, async |_, fresh| Ok::<_, DbErr>(fresh.len())).await
    });
    assert_eq!(done.await, Ok(Once::Done(100)));
    let expected = if database.backend == Backend::MySql { 100 } else { 1 };
    assert_eq!((statements.take().len(), database.count("inbox").await), (expected, 100));
}

async fn overlapping_batches_handle_each_message_once(database: &TestDatabase) {
    let ids: Vec<_> = (0..30).map(|_| MessageId::new()).collect();
    let start = Arc::new(Barrier::new(4));
    let mut batches = JoinSet::new();
    for batch in 0..4 {
        let (db, start, mut ids) = (database.db.clone(), start.clone(), ids.clone());
        if batch % 2 == 1 {
            ids.reverse();
        }
        batches.spawn(async move {
            start.wait().await;
            let handled = OutboxTransaction::run(&db, async |tx| {
                let count = async |_: &_, fresh: &[MessageId]| Ok::<_, SaveError>(fresh.len());
                INBOX.once_many(tx, "a", &ids, count).await
            });
            handled.await.unwrap().done().unwrap_or(0)
        });
    }
    let handled: usize = batches.join_all().await.into_iter().sum();
    assert_eq!((handled, database.count("inbox").await), (30, 30));
}

async fn a_name_that_not_every_database_keeps_is_refused_before_the_database_is_asked(
    database: &TestDatabase,
) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let tx = db.begin().await.unwrap();
    for name in ["", "a ", "a\0b", &"x".repeat(201)] {
        let never = async |_: &OutboxTransaction| -> Result<(), InboxError> { panic!("it ran") };
        let error = INBOX.once_in(&db, name, MessageId::new(), never).await.unwrap_err();
        assert!(matches!(error, InboxError::Consumer { .. }), "{error}");
        assert!(error.to_string().contains("give the consumer another name"), "{error}");
        let never = async |_: &_| -> Result<(), InboxError> { panic!("it ran") };
        let error = INBOX.once(&tx, name, MessageId::new(), never).await.unwrap_err();
        assert!(matches!(error, InboxError::Consumer { .. }), "{error}");
    }
    tx.rollback().await.unwrap();
    assert_eq!(statements.take(), [""; 0]);
}

async fn a_missing_table_says_what_to_do(database: &TestDatabase) {
    database.db.execute_unprepared("DROP TABLE inbox").await.unwrap();
    let never = async |_: &OutboxTransaction| -> Result<(), InboxError> { panic!("it ran") };
    let error = INBOX.once_in(&database.db, "a", MessageId::new(), never).await.unwrap_err();
    assert!(matches!(error, InboxError::Schema(_)), "{error:?}");
    assert!(error.to_string().contains("run the migrations"), "{error}");
}

/// A purge as it would be after so many days.
fn purge_after(days: i64, limit: u32) -> InboxPurge {
    let now = Some(chrono::Utc::now() + chrono::TimeDelta::days(days));
    InboxPurge { older_than: Duration::from_hours(24), limit, now }
}

async fn the_purge_deletes_old_records_and_no_more_than_its_limit(database: &TestDatabase) {
    let db = &database.db;
    for _ in 0..5 {
        assert_eq!(
            INBOX.once_in(db, "a", MessageId::new(), async |tx| effect(tx).await).await,
            Ok(Once::Done(()))
        );
    }
    assert_eq!(INBOX.purge(db, &purge_after(0, 10)).await.unwrap(), 0);
    assert_eq!(INBOX.purge(db, &purge_after(2, 3)).await.unwrap(), 3);
    assert_eq!(database.count("inbox").await, 2);
    assert_eq!(INBOX.purge(db, &purge_after(2, 3)).await.unwrap(), 2);
    // By the database's own clock.
    let unpinned = InboxPurge { older_than: Duration::from_hours(1), limit: 10, now: None };
    INBOX.once_in(db, "a", MessageId::new(), async |tx| effect(tx).await).await.unwrap().done().unwrap();
    assert_eq!(INBOX.purge(db, &unpinned).await.unwrap(), 0);
}

async fn what_the_inbox_does_not_remember_is_no_duplicate(database: &TestDatabase) {
    let (db, id) = (&database.db, MessageId::new());
    assert_eq!(INBOX.once_in(db, "a", id, async |tx| effect(tx).await).await, Ok(Once::Done(())));
    assert_eq!(INBOX.purge(db, &purge_after(2, 10)).await.unwrap(), 1);
    assert_eq!(INBOX.once_in(db, "a", id, async |tx| effect(tx).await).await, Ok(Once::Done(())));
    assert_eq!(counts(database).await, (2, 1));
}

async fn two_inboxes_with_names_of_their_own_know_nothing_of_each_other(database: &TestDatabase) {
    const OTHER: TableNames = TableNames::new().prefix("other_");
    migrate(&database.db, OTHER).await.unwrap();
    let id = MessageId::new();
    for inbox in [Inbox::default(), Inbox::new(OTHER)] {
        let once = inbox.once_in(&database.db, "a", id, async |tx| effect(tx).await).await;
        assert_eq!(once, Ok(Once::Done(())));
    }
    assert_eq!(Inbox::new(OTHER).purge(&database.db, &purge_after(2, 10)).await.unwrap(), 1);
    assert_eq!((database.count("inbox").await, database.count("other_inbox").await), (1, 0));
}

async fn the_effect_may_be_the_save_of_an_aggregate(database: &TestDatabase) {
    let (db, id) = (database.db.clone(), MessageId::new());
    let saved = tokio::spawn(async move {
        let mut orders = [Order::place("A-1"), Order::place("A-2")];
        let mut outcomes = Vec::new();
        for order in &mut orders {
            outcomes.push(INBOX.once_in(&db, "a", id, async |tx| order.save(tx).await).await?);
        }
        orders[1].discard_events();
        // Its transaction told it that it is stored.
        orders[0].ship("DHL");
        orders[0].save(&db).await?;
        Ok::<_, SaveError>(outcomes)
    });
    assert_eq!(saved.await.unwrap().unwrap(), [Once::Done(()), Once::Duplicate]);
    assert_eq!((database.count("orders").await, database.count("outbox").await), (1, 2));
}

use outbox_seaorm::SaveError;
use outbox_tests::{
    database::TestDatabase,
    entities::{FullTicket, Ticket, tickets},
    events::NoteTaken,
    for_each_database,
};
use sea_orm::{ConnectionTrait, EntityTrait, QueryOrder, TransactionTrait};

for_each_database! {
    every_save_counts_and_its_events_carry_the_version,
    a_root_that_somebody_else_saved_is_refused_and_kept,
    a_stale_root_is_not_deleted,
    a_failed_save_does_not_count,
    writers_that_start_over_lose_nothing,
}

async fn versions(database: &TestDatabase) -> Vec<i64> {
    let backend = database.db.get_database_backend();
    let sql = "SELECT aggregate_version FROM outbox ORDER BY id";
    let rows = database.db.query_all_raw(sea_orm::Statement::from_string(backend, sql)).await.unwrap();
    rows.iter().map(|row| row.try_get("", "aggregate_version").unwrap()).collect()
}

async fn stored(database: &TestDatabase) -> tickets::Model {
    tickets::Entity::find().order_by_asc(tickets::Column::Id).one(&database.db).await.unwrap().unwrap()
}

async fn every_save_counts_and_its_events_carry_the_version(database: &TestDatabase) {
    let db = &database.db;
    let mut ticket = Ticket::open();
    ticket.save(db).await.unwrap();
    ticket.move_to("waiting");
    ticket.save(db).await.unwrap();
    // A save without a change or an event counts as well, and so a consumer sees a gap.
    ticket.save(db).await.unwrap();
    let full = tickets::Entity::load().one(db).await.unwrap().unwrap();
    let mut full = FullTicket::from(full);
    full.raise(NoteTaken { text: "full".into() });
    full.save(db).await.unwrap();
    let mut ticket = Ticket::from(stored(database).await);
    ticket.raise(NoteTaken { text: "gone".into() });
    ticket.delete(db).await.unwrap();
    assert_eq!(versions(database).await, [1, 2, 4, 4]);
}

async fn a_root_that_somebody_else_saved_is_refused_and_kept(database: &TestDatabase) {
    let db = &database.db;
    Ticket::open().save(db).await.unwrap();
    let (mut mine, mut theirs) = (Ticket::from(stored(database).await), Ticket::from(stored(database).await));
    theirs.move_to("theirs");
    theirs.save(db).await.unwrap();
    mine.move_to("mine");
    for joined in [false, true] {
        let tx = db.begin().await.unwrap();
        let saved = if joined {
            mine.save(&tx).await
        } else {
            drop(tx);
            mine.save(db).await
        };
        let error = saved.unwrap_err();
        assert!(
            matches!(error, SaveError::Stale { aggregate_type: "ticket", loaded: 1, stored: 2 }),
            "{error}"
        );
    }
    assert_eq!((stored(database).await.state.as_str(), mine.pending_events()), ("theirs", 1));
    assert_eq!(versions(database).await, [1, 2]);
}

async fn a_stale_root_is_not_deleted(database: &TestDatabase) {
    let db = &database.db;
    Ticket::open().save(db).await.unwrap();
    let mut stale = Ticket::from(stored(database).await);
    let mut ticket = Ticket::from(stored(database).await);
    ticket.move_to("on");
    ticket.save(db).await.unwrap();
    assert!(matches!(stale.delete(db).await, Err(SaveError::Stale { .. })));
    ticket.delete(db).await.unwrap();
    assert!(matches!(stale.save(db).await, Err(SaveError::Gone { aggregate_type: "ticket" })));
    assert_eq!(database.count("tickets").await, 0);
}

async fn a_failed_save_does_not_count(database: &TestDatabase) {
    let db = &database.db;
    let mut ticket = Ticket::open();
    ticket.save(db).await.unwrap();
    ticket.move_to("too long");
    ticket.raise(NoteTaken { text: "x".repeat(2_000_000) });
    assert!(ticket.save(db).await.is_err());
    ticket.discard_events();
    ticket.move_to("fine");
    ticket.save(db).await.unwrap();
    assert_eq!((stored(database).await.version, versions(database).await), (2, vec![1, 2]));
}

async fn writers_that_start_over_lose_nothing(database: &TestDatabase) {
    Ticket::open().save(&database.db).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let db = database.db.clone();
        writers.spawn(async move {
            let mut saves = 0;
            while saves < 5 {
                let mut ticket = Ticket::from(tickets::Entity::find().one(&db).await.unwrap().unwrap());
                ticket.move_to("on");
                match ticket.save(&db).await {
                    Ok(()) => saves += 1,
                    Err(SaveError::Stale { .. }) => ticket.discard_events(),
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    writers.join_all().await;
    assert_eq!(stored(database).await.version, 21);
    assert_eq!(versions(database).await, (1..=21).collect::<Vec<_>>());
}

use outbox_core::{
    Envelope, ErrorClass, MessageId, OutboxStore, Relay, Router, Status,
    decide::{AttemptOutcome, FailedAttempt, Transition},
    row::Progress,
    store::{EventSignals, ListFilter, ListRequest, OrderedRequest, OutboxOperator, Standing},
};
use outbox_seaorm::SeaOrmStore;
use outbox_tests::{
    conformance::{at, claim, mark, request, take_over},
    database::{Backend, TestDatabase, connect},
    events::{OrderPlaced, placed, placed_many},
    for_each_database,
    statements::Statements,
    subject::{Sql, Subject},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement, TransactionTrait};
use std::time::Duration;

for_each_database! {
    rows_that_nobody_reads_cost_a_claim_nothing,
    rows_that_are_due_later_cost_a_claim_nothing,
    rows_that_are_finished_cost_a_claim_nothing,
    rows_that_are_finished_cost_the_signals_nothing,
    a_claim_takes_no_more_than_its_limit_whatever_the_statistics_say,
    rows_that_are_finished_cost_a_list_of_others_nothing,
    rows_behind_those_of_a_claim_cost_it_nothing,
}

/// Rows that stand in the way, and pages that may be touched more because of them: an index grows by a level.
const ROWS: i32 = 5_000;
const SLACK: i64 = 60;

/// What a claim of ten rows and a look for expired leases touch: pages on PostgreSQL, rows on MySQL. SQLite does not tell.
async fn cost(database: &TestDatabase) -> Option<i64> {
    let subject = Sql::new(database);
    subject.append(&placed_many(10)).await;
    let mut db = connect(&database.url, 1).await;
    let statements = Statements::listen(&mut db);
    let store = SeaOrmStore::new(db.clone());
    store.check().await.unwrap();
    // The plan is made, and the catalogue is read, before anything counts.
    assert!(!store.has_expired(&take_over(None)).await.unwrap());
    let before = rows_read(&db).await;
    statements.take();
    let claim = request(10, None);
    let claimed = store.claim(&claim).await.unwrap().rows;
    assert_eq!(claimed.len(), 10);
    assert!(!store.has_expired(&take_over(None)).await.unwrap());
    let sent = statements.take_filled();
    let cost = match database.backend {
        Backend::MySql => Some(rows_read(&db).await - before),
        Backend::Postgres => {
            mark(&subject, claim.token, &claimed, &Transition::Release, None).await;
            // In a transaction, because one of them says how those behind it are planned.
            let tx = db.begin().await.unwrap();
            let mut pages = 0;
            for sql in sent {
                pages += pages_of(&tx, &sql).await;
            }
            // The rows are claimed anew, under the same token.
            tx.commit().await.unwrap();
            Some(pages)
        }
        Backend::Sqlite => None,
    };
    mark(&subject, claim.token, &claimed, &Transition::Dispatched, None).await;
    db.close().await.unwrap();
    cost
}

/// The pages that a statement touches, which runs for that.
async fn pages_of(db: &impl ConnectionTrait, sql: &str) -> i64 {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}");
    let row = db.query_one_raw(Statement::from_string(DbBackend::Postgres, explain)).await.unwrap().unwrap();
    let plan: serde_json::Value = row.try_get_by_index(0).unwrap();
    let pages = |kind: &str| plan[0]["Plan"][kind].as_i64().unwrap();
    pages("Shared Hit Blocks") + pages("Shared Read Blocks")
}

/// The rows that a connection to MySQL has read so far.
async fn rows_read(db: &DatabaseConnection) -> i64 {
    if db.get_database_backend() != DbBackend::MySql {
        return 0;
    }
    let sql = "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_key', 'Handler_read_next',
               'Handler_read_first', 'Handler_read_prev', 'Handler_read_rnd', 'Handler_read_rnd_next')";
    let rows = db.query_all_raw(Statement::from_string(DbBackend::MySql, sql)).await.unwrap();
    rows.iter().map(|row| row.try_get_by_index::<String>(1).unwrap().parse::<i64>().unwrap()).sum()
}

/// Compares the cost before and after something was put in the way.
async fn same_cost(database: &TestDatabase, put_in_the_way: impl AsyncFnOnce()) {
    let before = cost(database).await;
    put_in_the_way().await;
    let after = cost(database).await;
    if let (Some(before), Some(after)) = (before, after) {
        assert!(after <= before + SLACK, "{before} before, {after} after");
    } else {
        assert_eq!(database.backend, Backend::Sqlite);
        uses_the_live_index(database).await;
    }
}

/// SQLite counts nothing, but tells its plan.
async fn uses_the_live_index(database: &TestDatabase) {
    let mut db = database.connect().await;
    let statements = Statements::listen(&mut db);
    let store = SeaOrmStore::new(db);
    store.claim(&request(10, at(0))).await.unwrap();
    store.has_expired(&take_over(at(0))).await.unwrap();
    let sent = statements.take();
    assert!(!sent.is_empty());
    for sql in sent.iter().filter(|sql| sql.contains("finished_at IS NULL")) {
        let statement = Statement::from_string(DbBackend::Sqlite, format!("EXPLAIN QUERY PLAN {sql}"));
        let plan = database.db.query_all_raw(statement).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|row| row.try_get("", "detail").unwrap()).collect();
        assert!(
            steps
                .iter()
                .any(|step| step.contains("outbox_live (event_type=? AND event_version=? AND lane=?")),
            "{steps:?}"
        );
        assert!(steps.iter().all(|step| !step.contains("SCAN outbox")), "{steps:?}");
    }
}

async fn rows_that_nobody_reads_cost_a_claim_nothing(database: &TestDatabase) {
    let subject = Sql::new(database);
    let unknown = |_| Envelope::stored(MessageId::new(), "nobody.knows-this".into(), 1, "{}".into());
    same_cost(database, async || {
        let rows: Vec<_> = (0..ROWS).map(unknown).collect();
        for part in rows.chunks(1_000) {
            store_many(&subject, part).await;
        }
    })
    .await;
    assert_eq!(database.count("outbox WHERE claims = 0").await, i64::from(ROWS));
}

async fn rows_that_are_due_later_cost_a_claim_nothing(database: &TestDatabase) {
    let subject = Sql::new(database);
    same_cost(database, async || {
        for _ in 0..ROWS / 1_000 {
            store_many(&subject, &placed_many(1_000)).await;
            let (token, rows) = claim(&subject, 1_000, at(0)).await;
            let delay = Duration::from_hours(24 * 7);
            mark(
                &subject,
                token,
                &rows,
                &Transition::Retry { delay, outcome: AttemptOutcome::default() },
                at(0),
            )
            .await;
        }
        vacuum(database).await;
    })
    .await;
    assert_eq!(database.count("outbox WHERE status = 'pending'").await, i64::from(ROWS));
}

async fn rows_that_are_finished_cost_a_claim_nothing(database: &TestDatabase) {
    let subject = Sql::new(database);
    same_cost(database, async || {
        for _ in 0..ROWS / 1_000 {
            store_many(&subject, &placed_many(1_000)).await;
            let (token, rows) = claim(&subject, 1_000, at(0)).await;
            mark(&subject, token, &rows, &Transition::Dispatched, at(0)).await;
        }
        vacuum(database).await;
    })
    .await;
    assert_eq!(database.count("outbox WHERE status = 'dispatched'").await, i64::from(ROWS) + 20);
}

/// What a look at the signals touches.
async fn cost_of_signals(database: &TestDatabase) -> Option<i64> {
    let mut db = connect(&database.url, 1).await;
    let statements = Statements::listen(&mut db);
    let store = SeaOrmStore::new(db.clone());
    store.signals(at(0)).await.unwrap();
    let before = rows_read(&db).await;
    statements.take();
    let signals = store.signals(at(0)).await.unwrap();
    assert_eq!((signals.total(|event| event.ready), signals.total(EventSignals::dead_letters)), (3, 1));
    let sent = statements.take_filled();
    let cost = match database.backend {
        Backend::MySql => Some(rows_read(&db).await - before),
        Backend::Postgres => {
            let mut pages = 0;
            for sql in sent {
                pages += pages_of(&db, &sql).await;
            }
            Some(pages)
        }
        Backend::Sqlite => {
            for sql in sent.iter().filter(|sql| sql.contains("outbox\"")) {
                let statement =
                    Statement::from_string(DbBackend::Sqlite, format!("EXPLAIN QUERY PLAN {sql}"));
                let plan = db.query_all_raw(statement).await.unwrap();
                let steps: Vec<String> = plan.iter().map(|row| row.try_get("", "detail").unwrap()).collect();
                let walks =
                    |step: &String| step.starts_with("SCAN") && !step.contains("USING") && is_outbox(step);
                assert!(!steps.iter().any(walks), "{steps:?}");
            }
            None
        }
    };
    db.close().await.unwrap();
    cost
}

/// Whether a step of SQLite's plan reads the table, under one of the names that it has in the statements.
fn is_outbox(step: &str) -> bool {
    ["outbox", "o", "d", "u", "r", "h"].iter().any(|name| step.split(' ').nth(1) == Some(name))
}

async fn rows_that_are_finished_cost_the_signals_nothing(database: &TestDatabase) {
    let subject = Sql::new(database);
    let dead = Transition::Dead(AttemptOutcome::new(
        Progress::new(),
        vec![FailedAttempt { handler: None, class: ErrorClass::Terminal, error: "no".into() }],
    ));
    store_many(&subject, &[placed(1).with_ordering_key("k")]).await;
    store_many(&subject, &placed_many(3)).await;
    let (token, rows) = claim(&subject, 1, at(0)).await;
    mark(&subject, token, &rows, &dead, at(0)).await;
    let before = cost_of_signals(database).await;
    for part in 0..ROWS / 1_000 {
        store_many(&subject, &placed_many(1_000)).await;
        let (token, rows) = claim(&subject, 1_000, at(0)).await;
        // Dead letters that somebody has resolved are finished as well.
        let (skipped, dispatched) = rows.split_at(usize::from(part == 0) * 20);
        mark(&subject, token, dispatched, &Transition::Dispatched, at(0)).await;
        mark(&subject, token, skipped, &dead, at(0)).await;
        for row in skipped {
            subject.store().skip(row.id, "ann", None, at(0)).await.unwrap();
        }
    }
    // What was claimed first was older, so as many are left as before.
    assert_eq!(database.count("outbox WHERE finished_at IS NULL").await, 3);
    vacuum(database).await;
    let after = cost_of_signals(database).await;
    if let (Some(before), Some(after)) = (before, after) {
        assert!(after <= before + SLACK, "{before} before, {after} after");
    }
}

async fn a_claim_takes_no_more_than_its_limit_whatever_the_statistics_say(database: &TestDatabase) {
    let subject = Sql::new(database);
    let analyze = match database.backend {
        Backend::MySql => "ANALYZE TABLE outbox",
        _ => "ANALYZE outbox",
    };
    // The statistics know an empty table.
    let statement = Statement::from_string(database.db.get_database_backend(), analyze);
    database.db.query_all_raw(statement).await.unwrap();
    for _ in 0..3 {
        store_many(&subject, &placed_many(1_000)).await;
    }
    assert_eq!(claim(&subject, 7, at(0)).await.1.len(), 7);
    let accept = |_: OrderPlaced| async { Ok::<(), outbox_core::HandlerError>(()) };
    let router = Router::builder().on("tests.accept", accept).build().unwrap();
    let report = Relay::new(subject.store().clone(), router).pass().await.unwrap();
    assert_eq!((report.claimed, report.dispatched), (100, 100));
    assert_eq!(database.count("outbox WHERE claims > 0").await, 107);
}

/// What operators look for: live rows, dead letters, a message, a relay.
fn usual_filters(message: &Envelope) -> Vec<ListFilter> {
    let standing = |standing| {
        let mut filter = ListFilter::default();
        filter.standing = standing;
        filter
    };
    let mut filters: Vec<_> =
        [Standing::Live, Standing::Unresolved, Standing::Replayable].map(standing).into();
    filters.extend(
        [Status::Pending, Status::Claimed, Status::Dead].map(|status| standing(Standing::Status(status))),
    );
    let mut filter = ListFilter::default();
    filter.message_id = Some(message.message_id);
    filters.push(filter.clone());
    filter = ListFilter::default();
    filter.claimed_by = Some("relay-1".into());
    filters.push(filter.clone());
    filter.claimed_by = None;
    filter.class = Some(ErrorClass::Terminal);
    filters.push(filter.clone());
    filter.class = None;
    filter.failed = true;
    filters.push(filter);
    filters
}

async fn rows_that_are_finished_cost_a_list_of_others_nothing(database: &TestDatabase) {
    let subject = Sql::new(database);
    for _ in 0..ROWS / 1_000 {
        store_many(&subject, &placed_many(1_000)).await;
        let (token, rows) = claim(&subject, 1_000, at(0)).await;
        mark(&subject, token, &rows, &Transition::Dispatched, at(0)).await;
    }
    let message = placed_many(1).remove(0);
    store_many(&subject, std::slice::from_ref(&message)).await;
    vacuum(database).await;
    analyze(database).await;
    let mut db = connect(&database.url, 1).await;
    let statements = Statements::listen(&mut db);
    let store = SeaOrmStore::new(db.clone());
    for filter in usual_filters(&message) {
        for newest_first in [false, true] {
            let list = ListRequest { newest_first, ..ListRequest::of(&filter) };
            store.list(&list).await.unwrap();
            statements.take();
            let before = rows_read(&db).await;
            statements.take();
            store.list(&list).await.unwrap();
            let sent = statements.take_filled();
            let mut cost = rows_read(&db).await - before;
            for sql in sent.iter().filter(|sql| sql.contains("FROM \"outbox\"")) {
                cost += match database.backend {
                    Backend::Postgres => pages_of(&db, sql).await,
                    _ => scans(&db, sql).await,
                };
            }
            assert!(cost <= SLACK, "{cost} for {filter:?}, newest first: {newest_first}");
        }
    }
    db.close().await.unwrap();
}

async fn rows_behind_those_of_a_claim_cost_it_nothing(database: &TestDatabase) {
    let few = cost_of_runs(database, 150).await;
    let many = cost_of_runs(database, 1_500).await;
    // MySQL walks from key to key through at most ten pages of rows, each of the claim's size and a few.
    let walk = if database.backend == Backend::MySql { 10 * 620 } else { 0 };
    assert!(many <= few + few / 10 + walk, "{few} rows are read beside few, {many} beside many");
}

/// The rows that a claim reads which takes 150 rows of each of four keys. On PostgreSQL in a transaction, because the
/// first statement of a claim says how the others are planned. SQLite tells its plans only; those are in plans.rs.
async fn cost_of_runs(database: &TestDatabase, rows_of_key: i32) -> i64 {
    let subject = Sql::new(database);
    let rows: Vec<_> = placed_many(4 * rows_of_key).into_iter().enumerate().collect();
    for part in rows.chunks(1_000) {
        let keyed = |(n, row): &(usize, Envelope)| row.clone().with_ordering_key(&format!("key-{}", n % 4));
        store_many(&subject, &part.iter().map(keyed).collect::<Vec<_>>()).await;
    }
    vacuum(database).await;
    analyze(database).await;
    let mut db = connect(&database.url, 1).await;
    let statements = Statements::listen(&mut db);
    let store = SeaOrmStore::new(db.clone());
    store.check().await.unwrap();
    let before = rows_read(&db).await;
    statements.take();
    let request = OrderedRequest { claim: request(600, at(0)), after: None };
    let claimed = store.claim_ordered(&request).await.unwrap().claimed.rows;
    assert_eq!(claimed.len(), 600);
    let sent = statements.take_filled();
    let mut cost = rows_read(&db).await - before;
    mark(&subject, request.claim.token, &claimed, &Transition::Release, at(0)).await;
    if database.backend == Backend::Postgres {
        let tx = db.begin().await.unwrap();
        for sql in sent.iter().filter(|sql| sql.starts_with("SELECT")) {
            cost += rows_walked(&tx, sql).await;
        }
        tx.rollback().await.unwrap();
    }
    db.close().await.unwrap();
    database.db.execute_unprepared("DELETE FROM outbox").await.unwrap();
    cost
}

/// The rows of the outbox that a statement on PostgreSQL reads.
async fn rows_walked(db: &impl ConnectionTrait, sql: &str) -> i64 {
    fn walked(node: &serde_json::Value) -> i64 {
        let own = if node["Relation Name"] == "outbox" || node["Index Name"] == "outbox_live_key" {
            let number = |name: &str| node[name].as_f64().unwrap_or_default();
            #[allow(clippy::cast_possible_truncation)]
            let rows =
                ((number("Actual Rows") + number("Rows Removed by Filter")) * number("Actual Loops")) as i64;
            rows
        } else {
            0
        };
        own + node["Plans"].as_array().into_iter().flatten().map(walked).sum::<i64>()
    }
    let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON) {sql}");
    let row = db.query_one_raw(Statement::from_string(DbBackend::Postgres, explain)).await.unwrap().unwrap();
    let plan: serde_json::Value = row.try_get_by_index(0).unwrap();
    walked(&plan[0]["Plan"])
}

/// Whether SQLite walks the table without an index, as a cost that is too high.
async fn scans(db: &DatabaseConnection, sql: &str) -> i64 {
    let statement = Statement::from_string(DbBackend::Sqlite, format!("EXPLAIN QUERY PLAN {sql}"));
    let plan = db.query_all_raw(statement).await.unwrap();
    let steps: Vec<String> = plan.iter().map(|row| row.try_get("", "detail").unwrap()).collect();
    let walks = |step: &&String| step.contains("SCAN o") && !step.contains("INDEX");
    let walks = steps.iter().filter(walks).count();
    i64::try_from(walks).unwrap() * i64::from(ROWS)
}

async fn analyze(database: &TestDatabase) {
    let sql = if database.backend == Backend::MySql { "ANALYZE TABLE outbox" } else { "ANALYZE outbox" };
    let statement = Statement::from_string(database.db.get_database_backend(), sql);
    database.db.query_all_raw(statement).await.unwrap();
}

/// On PostgreSQL the old index entries of rows that moved stay until autovacuum takes them.
async fn vacuum(database: &TestDatabase) {
    if database.backend == Backend::Postgres {
        database.db.execute_unprepared("VACUUM (INDEX_CLEANUP ON) outbox").await.unwrap();
    }
}

/// As `append`, without asking for the ids.
async fn store_many(subject: &Sql, envelopes: &[Envelope]) {
    let tx = TransactionTrait::begin(subject.store().connection()).await.unwrap();
    outbox_seaorm::Outbox::default().append_envelopes(&tx, envelopes).await.unwrap();
    tx.commit().await.unwrap();
}

use crate::conformance;
use outbox_tests::{
    database::{Backend, TestDatabase},
    events::placed_many,
    for_each_database,
    subject::{Sql, Subject},
};
use sea_orm::{ConnectionTrait, QueryResult, Statement, TransactionTrait};

for_each_database! {
    no_statement_walks_a_table_when_the_statistics_know_an_empty_one,
}

/// Tables that grow.
const LARGE: [&str; 3] = ["outbox", "outbox_attempts", "outbox_keys"];

/// What the whole conformance suite sends is explained in a database whose tables were analysed when they were empty.
async fn no_statement_walks_a_table_when_the_statistics_know_an_empty_one(database: &TestDatabase) {
    let (subject, statements) = Sql::heard(database).await;
    conformance::all(&subject, async || empty(database).await).await;
    let sent = statements.take_each();
    assert!(sent.len() > 60, "{} statements are not all of them", sent.len());
    empty(database).await;
    freeze_statistics(database).await;
    fill(database, &subject).await;
    let mut walks = Vec::new();
    for sql in sent.iter().filter(|sql| is_explained(sql)) {
        let mut steps = plan_walks(database, sql, true).await;
        steps.extend(plan_walks(database, sql, false).await);
        for step in steps {
            let words: Vec<_> = sql.split_whitespace().take(60).collect();
            walks.push(format!("{step}\n    of {}", words.join(" ")));
        }
    }
    assert!(walks.is_empty(), "{} walks:\n{}", walks.len(), walks.join("\n"));
}

async fn empty(database: &TestDatabase) {
    for table in ["outbox", "outbox_attempts", "outbox_keys", "outbox_control WHERE kind <> 'lock'"] {
        database.db.execute_unprepared(&format!("DELETE FROM {table}")).await.unwrap();
    }
}

/// The statistics are made now, and nobody mends them.
async fn freeze_statistics(database: &TestDatabase) {
    for table in LARGE {
        let statements = match database.backend {
            Backend::Postgres => vec![
                format!("TRUNCATE {table}"),
                format!("ALTER TABLE {table} SET (autovacuum_enabled = false)"),
                format!("ANALYZE {table}"),
            ],
            Backend::MySql => vec![
                format!("ALTER TABLE {table} STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0"),
                format!("ANALYZE TABLE {table}"),
            ],
            Backend::Sqlite => vec![format!("ANALYZE {table}")],
        };
        for sql in statements {
            let statement = Statement::from_string(database.db.get_database_backend(), sql);
            database.db.query_all_raw(statement).await.unwrap();
        }
    }
}

/// Finished rows, of keys and of none.
async fn fill(database: &TestDatabase, subject: &Sql) {
    for n in 0..4 {
        let mut rows = placed_many(1_000);
        if n % 2 == 0 {
            rows = rows
                .into_iter()
                .enumerate()
                .map(|(n, row)| row.with_ordering_key(&format!("key-{}", n % 100)))
                .collect();
        }
        subject.append(&rows).await;
    }
    let finish =
        "UPDATE outbox SET status = 'dispatched', attempts = 1, claims = 1, finished_at = created_at";
    database.db.execute_unprepared(finish).await.unwrap();
}

/// Left out are lists and histories, which have costs of their own in cost.rs, and the purge: all that is here is old
/// enough for it, so reading everything is what it is asked for.
fn is_explained(sql: &str) -> bool {
    let is_list = sql.starts_with("SELECT o.id, o.message_id") || sql.contains("ORDER BY id DESC");
    let is_purge = sql.starts_with("DELETE") && sql.contains("ORDER BY finished_at");
    let words = ["SELECT", "WITH", "UPDATE", "DELETE", "INSERT"];
    !is_list && !is_purge && words.iter().any(|word| sql.starts_with(word))
}

/// The steps of a plan that read a whole table of events, attempts or keys; with bitmaps, as PostgreSQL plans, and without,
/// as it plans in transactions that look for the first of many rows.
async fn plan_walks(database: &TestDatabase, sql: &str, bitmaps: bool) -> Vec<String> {
    let backend = database.db.get_database_backend();
    // A time in the text of a statement does not say that it is one.
    let typed = if database.backend == Backend::Postgres { "TIMESTAMPTZ '2040-" } else { "'2040-" };
    let sql = &sql.replace("'2040-", typed);
    let explain = match database.backend {
        Backend::Postgres => "EXPLAIN (FORMAT JSON)",
        Backend::MySql => "EXPLAIN",
        Backend::Sqlite => "EXPLAIN QUERY PLAN",
    };
    let tx = database.db.begin().await.unwrap();
    if !bitmaps && database.backend == Backend::Postgres {
        tx.execute_unprepared("SET LOCAL enable_bitmapscan = off").await.unwrap();
    }
    let rows = tx.query_all_raw(Statement::from_string(backend, format!("{explain} {sql}"))).await;
    let rows = rows.unwrap_or_else(|error| panic!("{error}: {sql}"));
    tx.rollback().await.unwrap();
    let names = names_of_tables(sql);
    match database.backend {
        Backend::Postgres => {
            let plan: serde_json::Value = rows[0].try_get_by_index(0).unwrap();
            let mut walks = Vec::new();
            walks_of(&plan[0]["Plan"], &mut walks);
            walks
        }
        Backend::MySql => {
            let text = |row: &QueryResult, column: &str| {
                row.try_get::<Option<String>>("", column).unwrap().unwrap_or_default()
            };
            let all =
                rows.iter().map(|row| ["table", "type", "key", "Extra"].map(|column| text(row, column)));
            let walks =
                |[table, kind, ..]: &[String; 4]| (kind == "ALL" || kind == "index") && names.contains(table);
            all.filter(walks).map(|step| step.join(" ")).collect()
        }
        Backend::Sqlite => {
            let all = rows.iter().map(|row| row.try_get::<String>("", "detail").unwrap());
            let scanned = |step: &String| {
                step.strip_prefix("SCAN ").map(|rest| rest.split(' ').next().map(str::to_owned))
            };
            // That one holds live rows only.
            let is_large = |step: &String| !step.contains("INDEX outbox_live");
            all.filter(is_large)
                .filter(|step| scanned(step).flatten().is_some_and(|name| names.contains(&name)))
                .collect()
        }
    }
}

/// What a statement calls the large tables.
fn names_of_tables(sql: &str) -> Vec<String> {
    let words: Vec<_> = sql.split_whitespace().map(|word| word.trim_matches(['(', ')', ','])).collect();
    let is_large = |word: &str| LARGE.contains(&word.trim_matches(['"', '`']));
    let mut names = Vec::new();
    for (place, word) in words.iter().enumerate().filter(|(_, word)| is_large(word)) {
        let renamed = words.get(place + 1).filter(|next| **next == "AS").and_then(|_| words.get(place + 2));
        names.push(renamed.copied().unwrap_or(word.trim_matches(['"', '`'])).to_owned());
    }
    names
}

fn walks_of(node: &serde_json::Value, walks: &mut Vec<String>) {
    let text = |name: &str| node[name].as_str().unwrap_or_default().to_owned();
    let (kind, table, index) = (text("Node Type"), text("Relation Name"), text("Index Name"));
    let is_large = LARGE.contains(&&*table);
    let whole_index = index.ends_with("_pkey") && text("Index Cond").is_empty();
    if is_large && (kind == "Seq Scan" || whole_index) {
        walks.push(format!("{kind} on {table} {index} {}", text("Filter")));
    }
    node["Plans"].as_array().into_iter().flatten().for_each(|node| walks_of(node, walks));
}

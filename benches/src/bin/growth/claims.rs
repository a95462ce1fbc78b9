//! Claims beside rows that do not concern them. To be reached beside finished rows: 1.2 times the pages.

use crate::pages;
use outbox_benches::{Backlog, append, fill, raw::Statements};
use sea_orm::{ConnectionTrait, DatabaseConnection};

/// Rows that are like those of the product, but for what the text changes.
const ROWS: &str = "INSERT INTO outbox (message_id, event_type, event_version, payload, occurred_at, status, available_at, finished_at, ordering_key, lane)
    SELECT gen_random_uuid(), TYPE, 1, '{\"order_id\":1,\"note\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}',
           now(), STATUS, AVAILABLE, FINISHED, KEY, LANE
      FROM generate_series(1, COUNT) AS n";

/// What is besides: its type, status, and times.
type Kind = [(&'static str, &'static str); 4];

const FINISHED: Kind = [
    ("TYPE", "'bench.order-placed'"),
    ("STATUS", "'dispatched'"),
    ("AVAILABLE", "now()"),
    ("FINISHED", "now()"),
];
const UNREAD: Kind =
    [("TYPE", "'nobody.knows-this'"), ("STATUS", "'pending'"), ("AVAILABLE", "now()"), ("FINISHED", "NULL")];
const NEXT_WEEK: Kind = [
    ("TYPE", "'bench.order-placed'"),
    ("STATUS", "'pending'"),
    ("AVAILABLE", "now() + interval '7 days'"),
    ("FINISHED", "NULL"),
];

pub(crate) async fn run(db: &DatabaseConnection, rows: usize) {
    let statements = Statements::listen(db, 100).await;
    let cases = [
        ("nothing", 0, FINISHED),
        ("finished rows", rows / 5, FINISHED),
        ("rows that nobody reads, before them", rows / 50, UNREAD),
        ("finished rows", rows, FINISHED),
        ("rows due in a week", rows, NEXT_WEEK),
    ];
    println!("| besides 1,000 rows that are due | pages of an unordered claim | of an ordered claim |");
    println!("| --- | ---: | ---: |");
    for (name, count, kind) in cases {
        let mut found = Vec::new();
        for backlog in [Backlog::Unordered, Backlog::Keys(1_000)] {
            fill(db, Backlog::Unordered, 0).await;
            add(db, count, kind, backlog).await;
            append(db, backlog, 1_000, 70).await;
            db.execute_unprepared("VACUUM ANALYZE outbox").await.expect("statistics");
            found.push(match backlog {
                Backlog::Unordered => pages::unordered(db, &statements).await,
                _ => pages::ordered(db).await,
            });
        }
        println!("| {count} {name} | {} | {} |", found[0], found[1]);
    }
}

/// Ordered ones have keys of their own that sort between those of the rows that are due.
async fn add(db: &DatabaseConnection, count: usize, kind: Kind, backlog: Backlog) {
    if count == 0 {
        return;
    }
    let (key, lane) = match backlog {
        Backlog::Unordered => ("NULL", "NULL"),
        _ => ("'=key-' || n % 1000 || '-'", "n % 256"),
    };
    let mut sql = ROWS.replace("COUNT", &count.to_string()).replace("KEY", key).replace("LANE", lane);
    for (hole, text) in kind {
        sql = sql.replace(hole, text);
    }
    db.execute_unprepared(&sql).await.expect("rows");
}

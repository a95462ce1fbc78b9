use super::{dead_letter, dead_order, execute, expire};
use outbox_core::ErrorClass;
use outbox_tests::{
    command::outbox,
    conformance::claim,
    database::{Backend, TestDatabase},
    events::placed,
    for_each_database,
    subject::Sql,
};
use serde_json::{Value, json};

for_each_database! {
    every_verb_is_exact_for_ids_of_64_bits,
}

/// The next row gets this id.
async fn start_at(database: &TestDatabase, id: i64) {
    let sql = match database.backend {
        Backend::Postgres => format!("ALTER TABLE outbox ALTER COLUMN id RESTART WITH {id}"),
        Backend::MySql => format!("ALTER TABLE outbox AUTO_INCREMENT = {id}"),
        Backend::Sqlite => {
            execute(database, "DELETE FROM sqlite_sequence WHERE name = 'outbox'").await;
            format!("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', {})", id - 1)
        }
    };
    execute(database, &sql).await;
}

async fn every_verb_is_exact_for_ids_of_64_bits(database: &TestDatabase) {
    let subject = Sql::new(database);
    // The last one is the first that a floating-point number cannot hold.
    for start in [1_i64 << 31, (1 << 53) + 1, i64::MAX - 10] {
        start_at(database, start).await;
        let first = dead_letter(&subject, placed(1), ErrorClass::Timeout).await;
        assert_eq!(first.0, start);
        let first = first.to_string();
        let json = async |arguments: &[&str]| {
            outbox(database, &[arguments, &["--json"]].concat()).await.fine().json()
        };
        let replayed = json(&["replay", &first]).await;
        let second = (start + 1).to_string();
        assert_eq!(replayed["results"], json!([{ "id": first, "done": true, "replayed_as": second }]));
        let shown = json(&["show", &first]).await;
        assert_eq!((&shown["row"]["id"], &shown["row"]["replayed_as"]), (&json!(first), &json!(second)));
        assert_eq!(shown["chain"], json!([first, second]));
        let listed = json(&["list", "--limit", "1"]).await;
        assert_eq!((&listed["rows"][0]["id"], &listed["next"]), (&json!(second), &json!(second)));
        let listed = json(&["list", "--limit", "1", "--after", &second]).await;
        assert_eq!(listed["rows"][0]["id"], json!(first));
        assert_eq!(json(&["retry-now", &second]).await["results"][0]["id"], json!(second));
        claim(&subject, 1, None).await;
        expire(database).await;
        assert_eq!(json(&["release", &second, "--yes"]).await["results"][0]["id"], json!(second));
        let text = outbox(database, &["list"]).await.fine().out;
        assert!(text.contains(&format!("\n{second}  ")), "{text}");
        assert_eq!(json(&["skip", &second, "--yes"]).await["results"][0]["done"], json!(true));
        let third = dead_order(&subject, ErrorClass::Timeout).await;
        let plan = json(&["replay", "--class", "timeout", "--dry-run"]).await;
        assert_eq!(plan["rows"][0]["id"], json!(third));
        json(&["skip", &third, "--yes"]).await;
    }
    let all = outbox(database, &["list", "--json"]).await.fine().json();
    let ids = all["rows"].as_array().unwrap().iter().map(|row| &row["id"]);
    assert!(ids.clone().all(Value::is_string), "{all}");
    assert_eq!(ids.count(), 9);
}

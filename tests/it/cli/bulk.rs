use super::dead_order;
use outbox_core::ErrorClass;
use outbox_tests::{command::outbox, database::TestDatabase, for_each_database, subject::Sql};
use serde_json::json;

for_each_database! {
    one_dead_letter_is_replayed_with_who_and_why,
    many_are_never_replayed_by_accident,
    a_filter_is_replayed_after_its_dry_run,
}

async fn one_dead_letter_is_replayed_with_who_and_why(database: &TestDatabase) {
    let subject = Sql::new(database);
    let id = dead_order(&subject, ErrorClass::Timeout).await;
    let replayed =
        outbox(database, &["replay", &id, "--reason", "the shop is back", "--json"]).await.fine().json();
    let new = replayed["results"][0]["replayed_as"].as_str().unwrap().to_owned();
    let shown = outbox(database, &["show", &new, "--json"]).await.fine().json();
    assert_eq!((&shown["row"]["replay_of"], &shown["chain"]), (&json!(id), &json!([id, new])));
    assert_eq!(shown["row"]["reason"], json!("the shop is back"));
    let login = std::process::Command::new("id").arg("-un").output().unwrap();
    let login = String::from_utf8(login.stdout).unwrap();
    assert_eq!(shown["row"]["operated_by"], json!(login.trim()), "the login name unless it is said");
    assert!(outbox(database, &["list"]).await.fine().out.contains(&format!("dead, replayed as {new}")));
    outbox(database, &["replay", &id]).await.failed(1, "replayed already");
    outbox(database, &["replay", &new]).await.failed(1, "only a dead row can be replayed");
    outbox(database, &["replay", &id, "--by", ""]).await.failed(2, "operator's name");
}

async fn many_are_never_replayed_by_accident(database: &TestDatabase) {
    let subject = Sql::new(database);
    for _ in 0..3 {
        dead_order(&subject, ErrorClass::Timeout).await;
    }
    let event = "orders.order-placed";
    for (arguments, code, words) in [
        (&["replay"][..], 2, "say which dead letters"),
        (&["replay", "--yes"], 2, "say which dead letters"),
        (&["replay", "--limit", "5", "--yes"], 2, "say which dead letters"),
        (&["replay", "1", "--event", event, "--yes"], 2, "do not go together"),
        (&["replay", "1", "--all", "--yes"], 2, "do not go together"),
        (&["replay", "--all", "--event", event, "--yes"], 2, "do not go together"),
        (&["replay", "1", "--dry-run"], 2, "--dry-run is for filters"),
        (&["replay", "--event", event], 1, "nothing was changed"),
        (&["replay", "--all"], 1, "3 dead letters of "),
        (&["replay", "--all", "--dry-run", "--yes"], 0, "3 dead letters would be replayed"),
        (&["replay", "--class", "decode", "--yes"], 0, "no dead letter is found"),
        (&["replay", "--event", "orders.order-placed.v2", "--yes"], 0, "no dead letter is found"),
    ] {
        outbox(database, arguments).await.failed(code, words);
        assert_eq!(database.count("outbox").await, 3, "{arguments:?} changed something");
    }
}

async fn a_filter_is_replayed_after_its_dry_run(database: &TestDatabase) {
    let subject = Sql::new(database);
    let mut timeouts = Vec::new();
    for class in [ErrorClass::Timeout, ErrorClass::Terminal, ErrorClass::Timeout, ErrorClass::Timeout] {
        let id = dead_order(&subject, class).await;
        timeouts.extend((class == ErrorClass::Timeout).then_some(id));
    }
    let filter = ["replay", "--class", "timeout", "--by", "ann", "--json"];
    let dry = outbox(database, &[&filter[..], &["--dry-run", "--limit", "2"]].concat()).await.fine().json();
    assert_eq!((&dry["dry_run"], &dry["is_complete"]), (&json!(true), &json!(false)));
    assert_eq!(dry["rows"].as_array().unwrap().len(), 2);
    let done = outbox(database, &[&filter[..], &["--yes", "--limit", "2"]].concat()).await.fine().json();
    let dead: Vec<_> = done["results"].as_array().unwrap().iter().map(|result| &result["id"]).collect();
    assert_eq!(dead, [&json!(timeouts[0]), &json!(timeouts[1])], "the oldest first, as in the dry run");
    let done = outbox(database, &[&filter[..], &["--yes"]].concat()).await.fine().json();
    assert_eq!(done["results"].as_array().unwrap().len(), 1, "what is replayed is not replayed again");
    assert_eq!(database.count("outbox WHERE replay_of IS NOT NULL").await, 3);
}

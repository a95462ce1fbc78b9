use super::{dead_order, execute};
use outbox_core::{
    Envelope, ErrorClass, OutboxStore,
    store::{Announcement, HandlerSets},
};
use outbox_tests::{
    command::outbox,
    database::{Backend, TestDatabase},
    events::{placed, placed_many},
    for_each_database,
    subject::{Sql, Subject},
};
use serde_json::json;
use std::time::Duration;

for_each_database! {
    the_status_tells_what_waits_what_is_dead_and_who_works,
    a_list_finds_what_its_filter_says,
    a_row_is_shown_by_its_id_or_its_message,
    a_row_of_a_newer_version_is_listed_and_hides_no_other,
    payloads_are_told_only_when_they_are_asked_for,
}

/// A relay, a dead letter, and a row that waits for it: the ids, and the message that waits.
async fn shop(database: &TestDatabase) -> (String, String, Envelope) {
    let subject = Sql::new(database);
    let handlers: HandlerSets =
        [("orders.order-placed.v1".to_owned(), ["mail.confirm".to_owned()].into())].into();
    let lasts = Duration::from_hours(1);
    let announcement = Announcement { relay: "one", handlers: &handlers, proceed: &[], lasts, now: None };
    subject.store().announce(&announcement).await.unwrap();
    let id = dead_order(&subject, ErrorClass::Timeout).await;
    let waiting = placed(2).with_ordering_key("k");
    let live = subject.append(std::slice::from_ref(&waiting)).await[0].to_string();
    (id, live, waiting)
}

async fn the_status_tells_what_waits_what_is_dead_and_who_works(database: &TestDatabase) {
    let (_, live, _) = shop(database).await;
    let status = outbox(database, &["status", "--json"]).await.fine().json();
    assert_eq!(status["events"][0]["ready"], json!(1));
    assert_eq!(status["events"][0]["dead"], json!({ "timeout": 1 }));
    assert_eq!(status["relays"][0]["name"], json!("one"));
    assert!(status["lag_seconds"].is_f64(), "{status}");
    // However old it is, a row that was never tried shows.
    let then = match database.backend {
        Backend::Sqlite => "2020-01-01T00:00:00.000000+00:00",
        _ => "2020-01-01 00:00:00",
    };
    execute(database, &format!("UPDATE outbox SET created_at = '{then}' WHERE id = {live}")).await;
    let text = outbox(database, &["status"]).await.fine().out;
    assert!(text.contains("  2020-01-01 00:00:00"), "{text}");
    assert!(text.contains("relays    one\n") && text.contains("orders.order-placed.v1"), "{text}");
}

async fn a_list_finds_what_its_filter_says(database: &TestDatabase) {
    let (id, live, waiting) = shop(database).await;
    let ids = |listed: &serde_json::Value| {
        listed["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let message = waiting.message_id.to_string();
    let key = waiting.ordering_key.clone().unwrap();
    for (flags, expected) in [
        (&[][..], vec![&live, &id]),
        (&["--oldest-first"], vec![&id, &live]),
        (&["--live"], vec![&live]),
        (&["--status", "dead"], vec![&id]),
        (&["--unresolved", "--class", "timeout"], vec![&id]),
        (&["--replayable", "--event", "orders.order-placed.v1"], vec![&id]),
        (&["--failed"], vec![&id]),
        (&["--status", "pending", "--failed"], vec![]),
        (&["--event", "orders.order-placed.v2"], vec![]),
        (&["--message", &message], vec![&live]),
        (&["--key", &key], vec![&live]),
        (&["--claimed-by", "relay-1"], vec![]),
        (&["--newer-than", "1h"], vec![&live, &id]),
        (&["--older-than", "1h"], vec![]),
        (&["--limit", "1"], vec![&live]),
        (&["--after", &live], vec![&id]),
    ] {
        let listed = outbox(database, &[&["list", "--json"], flags].concat()).await.fine().json();
        assert_eq!(ids(&listed).iter().collect::<Vec<_>>(), expected, "{flags:?}");
    }
    outbox(database, &["list", "--live", "--unresolved"]).await.failed(2, "cannot be used with");
    outbox(database, &["list", "--class", "bad"]).await.failed(2, "ErrorClass");
    assert_eq!(outbox(database, &["list", "--key", "nobody"]).await.fine().out, "no rows\n");
}

async fn a_row_is_shown_by_its_id_or_its_message(database: &TestDatabase) {
    let (id, live, waiting) = shop(database).await;
    let message = waiting.message_id.to_string();
    let shown = outbox(database, &["show", &id]).await.fine().out;
    for words in ["dead", "timeout: no such shop", "mail.confirm", "relay-1"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let shown = outbox(database, &["show", "--message", &message, "--json"]).await.fine().json();
    assert_eq!((&shown["row"]["id"], &shown["chain"]), (&json!(live), &json!([live])));
    outbox(database, &["show", "99"]).await.failed(1, "there is no outbox row 99");
    let nobody = "00000000-0000-0000-0000-000000000000";
    outbox(database, &["show", "--message", nobody]).await.failed(1, "no outbox row of message");
}

async fn a_row_of_a_newer_version_is_listed_and_hides_no_other(database: &TestDatabase) {
    let subject = Sql::new(database);
    let id = dead_order(&subject, ErrorClass::Timeout).await;
    subject.append(&placed_many(2)).await;
    let sql = format!("UPDATE outbox SET error_class = 'quantum', headers = '[1]' WHERE id = {id}");
    execute(database, &sql).await;
    let listed = outbox(database, &["list", "--unresolved"]).await.fine().out;
    assert!(listed.contains("quantum: no such shop"), "{listed}");
    let shown = outbox(database, &["show", &id, "--json", "--payload"]).await.fine().json();
    assert_eq!((&shown["row"]["error_class"], &shown["row"]["headers"]), (&json!("quantum"), &json!("[1]")));
    assert_eq!(
        outbox(database, &["list", "--json"]).await.fine().json()["rows"].as_array().unwrap().len(),
        3
    );
    if database.backend == Backend::Sqlite {
        // Only SQLite lets a column hold what is no id at all.
        execute(database, &format!("UPDATE outbox SET message_id = 'x' WHERE id = {id}")).await;
        let listed = outbox(database, &["list", "--json"]).await.fine().json();
        assert_eq!(listed["rows"].as_array().unwrap().len(), 2);
        assert_eq!(listed["unreadable"][0]["id"], json!(id));
        let text = outbox(database, &["list"]).await.fine().out;
        assert!(text.contains(&format!("outbox row {id} cannot be read: column message_id")), "{text}");
        outbox(database, &["show", &id]).await.failed(3, "cannot be read");
    }
}

async fn payloads_are_told_only_when_they_are_asked_for(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(77_777).with_header("tenant", "acme-secret");
    let id = subject.append(std::slice::from_ref(&envelope)).await[0].to_string();
    let private = |text: &str| text.contains("77777") || text.contains("acme-secret");
    for arguments in
        [&["list"][..], &["show", &id], &["status"], &["list", "--json"], &["show", &id, "--json"]]
    {
        let told = outbox(database, arguments).await.fine();
        assert!(!private(&told.out) && !private(&told.err), "{told:?}");
    }
    for arguments in [&["list", "--payload"][..], &["show", &id, "--payload"]] {
        let told = outbox(database, arguments).await.fine().out;
        assert!(told.contains("77777") && told.contains("acme-secret"), "{told}");
    }
    let shown = outbox(database, &["show", &id, "--payload", "--json"]).await.fine().json();
    assert_eq!(shown["row"]["payload"], json!(envelope.payload), "a text, to the letter");
}

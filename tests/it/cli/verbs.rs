use super::{age, dead_order, expire};
use outbox_cli::{Console, Exit};
use outbox_core::{
    ErrorClass, OutboxStore,
    decide::{AttemptOutcome, Transition},
    store::{HandlerSets, Pause},
};
use outbox_tests::{
    command::{command, end, outbox},
    conformance::{claim, mark},
    database::TestDatabase,
    events::{placed, placed_many},
    for_each_database,
    subject::{Sql, Subject},
};
use serde_json::json;
use std::{
    io::{Cursor, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

for_each_database! {
    a_live_lease_is_protected_and_an_expired_one_is_released,
    skipping_needs_a_confirmation,
    somebody_at_a_terminal_is_asked,
    a_row_in_backoff_is_made_due,
    a_purge_says_what_it_deletes_and_does_it_once_confirmed,
    pauses_begin_and_end,
    status_list_and_show_tell_what_is_there,
    a_row_of_a_newer_version_is_listed_and_hides_no_other,
    payloads_are_told_only_when_they_are_asked_for,
    a_pipe_that_nobody_reads_is_no_failure,
    the_doctor_tells_what_is_wrong_by_its_exit_code,
}

async fn a_live_lease_is_protected_and_an_expired_one_is_released(database: &TestDatabase) {
    let subject = Sql::new(database);
    let envelope = placed(1);
    let id = subject.append(std::slice::from_ref(&envelope)).await[0].to_string();
    claim(&subject, 1, None).await;
    let before = subject.row(&envelope).await;
    outbox(database, &["release", &id, "--yes"]).await.failed(1, "its lease has not expired");
    assert_eq!(subject.row(&envelope).await, before);
    expire(database).await;
    let refused = outbox(database, &["release", &id]).await.failed(1, "nothing was changed");
    assert!(refused.err.contains("orders.order-placed.v1") && refused.err.contains("--yes"), "{refused:?}");
    assert!(subject.row(&envelope).await.lease.is_some());
    let released = outbox(database, &["release", &id, "--yes"]).await.fine();
    assert_eq!(released.out, format!("{id}: released\n"));
    assert_eq!(subject.row(&envelope).await.lease, None);
}

async fn skipping_needs_a_confirmation(database: &TestDatabase) {
    let subject = Sql::new(database);
    let id = dead_order(&subject, ErrorClass::Terminal).await;
    let refused = outbox(database, &["skip", &id]).await.failed(1, "nothing was changed");
    assert!(refused.err.contains("no such shop"), "it shows what would be skipped: {refused:?}");
    assert_eq!(database.count("outbox WHERE resolved_at IS NULL").await, 1);
    outbox(database, &["skip", "99", "--yes"]).await.failed(1, "there is no outbox row 99");
    let skipped =
        outbox(database, &["skip", &id, "99", "--by", "ann", "--reason", "shop is gone", "--yes", "--json"])
            .await;
    assert_eq!(skipped.code, Some(1), "one of two was refused: {skipped:?}");
    let results = &skipped.json()["results"];
    assert_eq!((&results[0]["id"], &results[0]["done"]), (&json!(id), &json!(true)));
    assert_eq!((&results[1]["id"], &results[1]["done"]), (&json!("99"), &json!(false)));
    let row = &outbox(database, &["show", &id, "--json"]).await.fine().json()["row"];
    assert_eq!((&row["operated_by"], &row["reason"]), (&json!("ann"), &json!("shop is gone")));
    outbox(database, &["skip", &id, "--yes"]).await.failed(1, "resolved already");
}

/// A stream that keeps what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn at_a_terminal(database: &TestDatabase, arguments: &[&str], answer: &'static str) -> (Exit, String) {
    let (out, err) = (Kept::default(), Kept::default());
    let input = Box::new(Cursor::new(answer));
    let mut console = Console::new(input, Box::new(out), Box::new(err.clone()), true);
    let arguments = [&["outbox", "--database-url", &*database.url], arguments].concat();
    let exit = outbox_cli::run(arguments, &mut console).await;
    let said = String::from_utf8(err.0.lock().unwrap().clone()).unwrap();
    (exit, said)
}

async fn somebody_at_a_terminal_is_asked(database: &TestDatabase) {
    let subject = Sql::new(database);
    let id = dead_order(&subject, ErrorClass::Terminal).await;
    for answer in ["", "y\n", "no\n", "YES\n"] {
        let (exit, said) = at_a_terminal(database, &["skip", &id, "--by", "ann"], answer).await;
        assert_eq!(exit, Exit::Refused, "{answer:?}: {said}");
        assert!(said.contains("no such shop") && said.contains("Type yes to go on: "), "{said}");
    }
    assert_eq!(database.count("outbox WHERE resolved_at IS NULL").await, 1);
    let (exit, said) = at_a_terminal(database, &["skip", &id, "--by", "ann"], "yes\n").await;
    assert_eq!(exit, Exit::Fine, "{said}");
    assert_eq!(database.count("outbox WHERE resolved_at IS NULL").await, 0);
}

async fn a_row_in_backoff_is_made_due(database: &TestDatabase) {
    let subject = Sql::new(database);
    let id = subject.append(&[placed(1)]).await[0].to_string();
    let (token, rows) = claim(&subject, 1, None).await;
    let later = Transition::Retry { delay: Duration::from_hours(1), outcome: AttemptOutcome::default() };
    mark(&subject, token, &rows, &later, None).await;
    assert_eq!(claim(&subject, 1, None).await.1, []);
    outbox(database, &["retry-now", &id]).await.fine();
    assert_eq!(claim(&subject, 1, None).await.1.len(), 1);
    outbox(database, &["retry-now", &id]).await.failed(1, "it is being tried already");
}

async fn a_purge_says_what_it_deletes_and_does_it_once_confirmed(database: &TestDatabase) {
    let subject = Sql::new(database);
    dead_order(&subject, ErrorClass::Terminal).await;
    let skipped = dead_order(&subject, ErrorClass::Terminal).await;
    outbox(database, &["skip", &skipped, "--yes"]).await.fine();
    subject.append(&placed_many(3)).await;
    let (token, rows) = claim(&subject, 3, None).await;
    mark(&subject, token, &rows, &Transition::Dispatched, None).await;
    let nothing = outbox(database, &["purge", "--older-than", "7d", "--dry-run"]).await.fine();
    assert!(nothing.out.starts_with("would delete 0 dispatched rows"), "{nothing:?}");
    age(database).await;
    outbox(database, &["purge", "--older-than", "7d"]).await.failed(1, "This deletes 3 dispatched rows");
    assert_eq!(database.count("outbox").await, 5);
    for (what, n, left) in [(None, 3, 2), (Some("--resolved"), 1, 1), (Some("--history"), 1, 1)] {
        let purge =
            |last: &'static str| ["purge", "--older-than", "7d", "--json", last].into_iter().chain(what);
        let dry = outbox(database, &purge("--dry-run").collect::<Vec<_>>()).await.fine().json();
        assert_eq!(dry, json!({ "dry_run": true, "rows": n }), "{what:?}");
        let done = outbox(database, &purge("--yes").collect::<Vec<_>>()).await.fine().json();
        assert_eq!(done, json!({ "dry_run": false, "rows": n }), "{what:?}");
        assert_eq!(database.count("outbox").await, left);
    }
    assert_eq!(database.count("outbox WHERE status = 'dead'").await, 1, "what is owed stays");
    assert_eq!(database.count("outbox_attempts").await, 1, "and its history with it");
    super::execute(database, "DELETE FROM outbox_control WHERE kind = 'lock'").await;
    outbox(database, &["purge", "--older-than", "7d", "--yes"]).await.failed(1, "another purge is running");
}

async fn pauses_begin_and_end(database: &TestDatabase) {
    let store = Sql::new(database).store().clone();
    for (flags, pause) in [
        (&["--all"][..], Pause::All),
        (&["--event", "orders.order-placed"], Pause::Event("orders.order-placed".into())),
        (&["--handler", "mail.confirm"], Pause::Handler("mail.confirm".into())),
    ] {
        let with = |verb: &'static str, more: &[&'static str]| [&[verb], flags, more].concat();
        outbox(database, &with("pause", &["--by", "ann", "--reason", "a flood"])).await.fine();
        let [entry] = &store.control(None).await.unwrap().pauses[..] else { panic!("one pause") };
        assert_eq!((&entry.pause, &*entry.by, entry.reason.as_deref()), (&pause, "ann", Some("a flood")));
        let status = outbox(database, &["status"]).await.fine();
        assert!(status.out.contains(&pause.to_string()) && status.out.contains("a flood"), "{status:?}");
        outbox(database, &with("resume", &[])).await.fine();
        outbox(database, &with("resume", &[])).await.failed(1, "is not paused");
    }
    outbox(database, &["pause"]).await.failed(2, "--all");
    outbox(database, &["pause", "--event", "orders.order-placed.v1"]).await.failed(2, "in all its versions");
}

async fn status_list_and_show_tell_what_is_there(database: &TestDatabase) {
    let subject = Sql::new(database);
    let handlers: HandlerSets =
        [("orders.order-placed.v1".to_owned(), ["mail.confirm".to_owned()].into())].into();
    let announcement = outbox_core::store::Announcement {
        relay: "one",
        handlers: &handlers,
        proceed: &[],
        lasts: Duration::from_hours(1),
        now: None,
    };
    subject.store().announce(&announcement).await.unwrap();
    let id = dead_order(&subject, ErrorClass::Timeout).await;
    let waiting = placed(2).with_ordering_key("k");
    let live = subject.append(std::slice::from_ref(&waiting)).await[0].to_string();

    let status = outbox(database, &["status", "--json"]).await.fine().json();
    assert_eq!(status["events"][0]["ready"], json!(1));
    assert_eq!(status["events"][0]["dead"], json!({ "timeout": 1 }));
    assert_eq!(status["relays"][0]["name"], json!("one"));
    assert!(status["lag_seconds"].is_f64(), "{status}");
    // However old it is, a row that was never tried shows.
    let then = match database.backend {
        outbox_tests::database::Backend::Sqlite => "2020-01-01T00:00:00.000000+00:00",
        _ => "2020-01-01 00:00:00",
    };
    super::execute(database, &format!("UPDATE outbox SET created_at = '{then}' WHERE id = {live}")).await;
    let text = outbox(database, &["status"]).await.fine().out;
    assert!(text.contains("  2020-01-01 00:00:00"), "{text}");
    super::execute(database, &format!("UPDATE outbox SET created_at = available_at WHERE id = {live}")).await;
    let text = outbox(database, &["status"]).await.fine().out;
    assert!(text.contains("relays    one\n") && text.contains("orders.order-placed.v1"), "{text}");

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
    super::execute(database, &sql).await;
    let listed = outbox(database, &["list", "--unresolved"]).await.fine().out;
    assert!(listed.contains("quantum: no such shop"), "{listed}");
    let shown = outbox(database, &["show", &id, "--json", "--payload"]).await.fine().json();
    assert_eq!((&shown["row"]["error_class"], &shown["row"]["headers"]), (&json!("quantum"), &json!("[1]")));
    assert_eq!(
        outbox(database, &["list", "--json"]).await.fine().json()["rows"].as_array().unwrap().len(),
        3
    );
    if database.backend == outbox_tests::database::Backend::Sqlite {
        // Only SQLite lets a column hold what is no id at all.
        super::execute(database, &format!("UPDATE outbox SET message_id = 'x' WHERE id = {id}")).await;
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

async fn a_pipe_that_nobody_reads_is_no_failure(database: &TestDatabase) {
    let subject = Sql::new(database);
    subject.append(&placed_many(100)).await;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(&["list"]);
    command.env("DATABASE_URL", &database.url).stdout(writer);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(command);
    let output =
        tokio::time::timeout(outbox_tests::wait::PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*said), (Some(0), ""));
}

async fn the_doctor_tells_what_is_wrong_by_its_exit_code(database: &TestDatabase) {
    let healthy = outbox(database, &["doctor", "--long-transaction", "7d"]).await.fine();
    assert!(healthy.out.ends_with("nothing is wrong\n") && healthy.out.contains("checked: "), "{healthy:?}");
    let json = outbox(database, &["doctor", "--json", "--long-transaction", "7d"]).await.fine().json();
    assert_eq!(json["findings"], json!([]));
    Sql::new(database).append(&placed_many(1)).await;
    let found =
        outbox(database, &["doctor", "--long-transaction", "7d"]).await.failed(1, "error    no-relay: ");
    assert!(found.out.contains("why:  ") && found.out.contains("mend: "), "{found:?}");
    let json = outbox(database, &["doctor", "--json", "--long-transaction", "7d"])
        .await
        .failed(1, "no-relay")
        .json();
    let finding = &json["findings"][0];
    assert_eq!((&finding["severity"], &finding["code"]), (&json!("error"), &json!("no-relay")));
    let without = end(command(&["doctor"])).await;
    without.failed(2, "DATABASE_URL");
}

use super::{age, dead_order, expire};
use outbox_cli::{Console, Exit};
use outbox_core::{
    ErrorClass, OutboxStore,
    decide::{AttemptOutcome, Transition},
    store::Pause,
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
    a_pause_of_what_no_live_relay_has_is_doubted,
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

async fn a_pause_of_what_no_live_relay_has_is_doubted(database: &TestDatabase) {
    let handlers = [("orders.order-placed.v1".to_owned(), ["mail.confirm".to_owned()].into())].into();
    let lasts = Duration::from_hours(1);
    let announcement = outbox_core::store::Announcement {
        relay: "one",
        handlers: &handlers,
        proceed: &[],
        lasts,
        now: None,
    };
    Sql::new(database).store().announce(&announcement).await.unwrap();
    for (flag, name, is_known) in [
        ("--handler", "mail.confirm", true),
        ("--handler", "mail.confrim", false),
        ("--event", "orders.order-placed", true),
        ("--event", "orders.order", false),
        ("--event", "OrderPlaced", false),
    ] {
        let said = outbox(database, &["pause", flag, name]).await.fine();
        assert_eq!(!said.out.contains("is the name right?"), is_known, "{said:?}");
    }
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

use super::dead;
use outbox_core::store::Mark;
use outbox_core::{ErrorClass, OutboxStore};
use outbox_seaorm::{Outbox, SeaOrmStore, TableNames};
use outbox_tests::{
    command::{Ended, command, end, outbox},
    conformance::request,
    database::{Backend, TestDatabase},
    events::placed,
    for_each_database, for_each_empty_database,
};
use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::json;

for_each_empty_database! {
    tables_that_are_missing_are_said_and_made,
    every_verb_honours_schema_and_prefix,
}

for_each_database! {
    a_password_never_appears,
}

async fn at(url: &str, arguments: &[&str]) -> Ended {
    let mut command = command(arguments);
    command.env("DATABASE_URL", url);
    end(command).await
}

async fn tables_that_are_missing_are_said_and_made(database: &TestDatabase) {
    for arguments in
        [&["status"][..], &["list"], &["show", "1"], &["replay", "1"], &["purge", "--older-than", "1d"]]
    {
        outbox(database, arguments).await.failed(3, "run the migrations");
    }
    outbox(database, &["doctor"]).await.failed(1, "outbox migrate up");
    let before = outbox(database, &["migrate", "status"]).await;
    assert_eq!((before.code, before.out.matches("  -").count()), (Some(1), 4), "{before:?}");
    let made = outbox(database, &["migrate", "up"]).await.fine();
    assert_eq!(made.out.matches("outbox_migrations").count(), 4, "{made:?}");
    assert_eq!(outbox(database, &["migrate", "up"]).await.fine(), made, "again does nothing");
    let status = outbox(database, &["migrate", "status", "--json"]).await.fine().json();
    assert_eq!(status["migrations"][0]["recorded_in"], json!("outbox_migrations"));
    outbox(database, &["doctor", "--long-transaction", "7d"]).await.fine();
}

/// Mixed case, a space, a quote of each kind, a reserved word; the schema is on no search path.
async fn every_verb_honours_schema_and_prefix(database: &TestDatabase) {
    let name = database.url.rsplit_once('/').unwrap().1;
    let schema = match database.backend {
        Backend::Postgres => "My \"App` it's".to_owned(),
        Backend::MySql => format!("{} \"App` it's", &name[name.len() - 20..]),
        Backend::Sqlite => "main".to_owned(),
    };
    let schema: &'static str = Box::leak(schema.into_boxed_str());
    match database.backend {
        Backend::Postgres => {
            database.db.execute_unprepared("CREATE SCHEMA \"My \"\"App` it's\"").await.unwrap();
        }
        Backend::MySql => {
            let quoted = schema.replace('`', "``");
            for sql in [format!("DROP DATABASE IF EXISTS `{quoted}`"), format!("CREATE DATABASE `{quoted}`")]
            {
                database.db.execute_unprepared(&sql).await.unwrap();
            }
        }
        Backend::Sqlite => {}
    }
    let tables = TableNames::new().schema(schema).prefix("Select it's ");
    let store = SeaOrmStore::with_tables(database.db.clone(), tables);
    let run = async |arguments: &[&str]| {
        let place = ["--schema", schema, "--prefix", "Select it's "];
        outbox(database, &[arguments, &place].concat()).await
    };
    run(&["doctor"]).await.failed(1, "tables-missing");
    run(&["migrate", "up"]).await.fine();
    run(&["migrate", "status"]).await.fine();
    run(&["doctor", "--long-transaction", "7d"]).await.fine();

    let tx = database.db.begin().await.unwrap();
    let envelopes = [placed(1), placed(2)];
    Outbox::new(tables).append_envelopes(&tx, &envelopes).await.unwrap();
    tx.commit().await.unwrap();
    let claim = request(1, None);
    let claimed = store.claim(&claim).await.unwrap().rows;
    let transition = dead(ErrorClass::Timeout);
    store
        .mark(&[Mark { id: claimed[0].id, token: claim.token, transition, replay_of: None }], None)
        .await
        .unwrap();
    let id = claimed[0].id.to_string();
    let listed = run(&["list", "--json"]).await.fine().json();
    assert_eq!(listed["rows"].as_array().unwrap().len(), 2);
    assert!(run(&["status"]).await.fine().out.contains("timeout"));
    run(&["show", &id]).await.fine();
    run(&["replay", "--all", "--dry-run"]).await.fine();
    run(&["replay", "--all", "--yes"]).await.fine();
    run(&["retry-now", "2"]).await.fine();
    run(&["skip", "2", "3", "--yes"]).await.fine();
    run(&["release", "2", "--yes"]).await.failed(1, "only a claimed row");
    run(&["pause", "--all"]).await.fine();
    let found = run(&["doctor", "--long-transaction", "7d"]).await.failed(1, "paused");
    assert!(found.out.contains(r"--prefix 'Select it'\''s ' resume --all"), "{found:?}");
    run(&["resume", "--all"]).await.fine();
    let purged = run(&["purge", "--older-than", "0s", "--resolved", "--yes", "--json"]).await.fine().json();
    assert_eq!(purged["rows"], json!(3));
    if database.backend == Backend::MySql {
        database
            .db
            .execute_unprepared(&format!("DROP DATABASE `{}`", schema.replace('`', "``")))
            .await
            .unwrap();
    }
}

async fn a_password_never_appears(database: &TestDatabase) {
    let secret = "s3cr3t/p@ss";
    let wrong = match database.backend {
        Backend::Sqlite => "sqlite:///nowhere/at/all.sqlite?password=s3cr3t/p@ss".to_owned(),
        Backend::Postgres => "postgres://ann:s3cr3t%2Fp@ss@127.0.0.1:1/nothing".to_owned(),
        Backend::MySql => "mysql://ann:s3cr3t/p@ss@127.0.0.1:1/nothing".to_owned(),
    };
    let hidden = |ended: &Ended| {
        for part in [secret, "s3cr3t", "p@ss"] {
            assert!(!ended.out.contains(part) && !ended.err.contains(part), "{ended:?}");
        }
    };
    hidden(&at(&wrong, &["status", "--timeout", "2s"]).await.failed(3, "cannot be reached"));
    for (url, arguments, code) in [
        ("oracle://ann:s3cr3t@host/db", &["status"][..], 2),
        ("ann:s3cr3t@host", &["status"], 2),
        ("postgres://ann:s3cr3t@[host", &["status", "--timeout", "2s"], 3),
        ("postgres://ann:s3cr3t@host/db", &["--help"], 0),
        ("postgres://ann:s3cr3t@host/db", &["status", "--help"], 0),
        ("x", &["postgres://ann:s3cr3t@host/db"], 2),
        ("x", &["--database-urL", "postgres://ann:s3cr3t@host/db"], 2),
        ("x", &["status", "--schema", "", "--database-url", "postgres://ann:s3cr3t@host/db"], 2),
    ] {
        let ended = at(url, arguments).await;
        assert_eq!(ended.code, Some(code), "{ended:?}");
        hidden(&ended);
    }
    // The real one is told without its login.
    let status = outbox(database, &["status"]).await.fine();
    assert!(!status.out.contains("root@") && !status.out.contains("postgres@"), "{status:?}");
    assert!(
        status.out.contains(database.url.rsplit_once('/').unwrap().1.trim_end_matches("?mode=rwc")),
        "{status:?}"
    );
}

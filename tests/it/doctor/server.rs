use super::{announce, codes, execute, look, of_code, only, pinned};
use outbox_core::store::StoreErrorKind;
use outbox_seaorm::{
    SeaOrmStore, TableNames,
    doctor::{DoctorOptions, examine},
    migrate,
};
use outbox_tests::{
    conformance::at,
    database::{Backend, TestDatabase, begin_immediate, connect},
    events::placed_many,
    for_each_database,
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement, TransactionTrait};
use std::time::Duration;

for_each_database! {
    clocks_that_are_apart_are_found,
    a_level_under_which_saves_fail_is_found,
    a_transaction_that_is_open_for_long_is_found_and_gone_after_its_end,
    a_prepared_transaction_is_found,
    what_the_login_may_not_ask_is_said,
    sqlite_without_a_write_ahead_log_is_found,
    a_reader_that_holds_back_the_log_is_found,
    a_write_lock_that_somebody_holds_is_found,
    a_database_that_is_gone_is_an_error_and_no_finding,
}

async fn number(db: &DatabaseConnection, sql: &str) -> i64 {
    let row =
        db.query_one_raw(Statement::from_string(db.get_database_backend(), sql)).await.unwrap().unwrap();
    row.try_get_by_index(0).unwrap()
}

async fn clocks_that_are_apart_are_found(database: &TestDatabase) {
    let mut options = DoctorOptions::default();
    options.now = at(0);
    let diagnosis = look(database, &options).await;
    assert!(only(&diagnosis, "clock-skew").what.ends_with("s ahead of this machine's"), "{diagnosis:?}");
    options.now = Some(chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(365));
    let diagnosis = look(database, &options).await;
    assert!(only(&diagnosis, "clock-skew").what.ends_with("s behind this machine's"), "{diagnosis:?}");
    assert_eq!(look(database, &pinned(0)).await.findings, [], "less than what is allowed");
}

async fn a_level_under_which_saves_fail_is_found(database: &TestDatabase) {
    let sql = match database.backend {
        Backend::Sqlite => return, // It has one level.
        Backend::Postgres => "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        Backend::MySql => "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    };
    let db = connect(&database.url, 1).await;
    let store = SeaOrmStore::new(db.clone());
    assert_eq!(examine(&store, &DoctorOptions::default()).await.unwrap().findings, []);
    execute(&db, sql).await;
    let diagnosis = examine(&store, &DoctorOptions::default()).await.unwrap();
    assert!(only(&diagnosis, "isolation").what.contains("SERIALIZABLE"), "{diagnosis:?}");
    db.close().await.unwrap();
}

async fn a_transaction_that_is_open_for_long_is_found_and_gone_after_its_end(database: &TestDatabase) {
    let own = match database.backend {
        Backend::Sqlite => return, // It tells nothing of other connections; its log does.
        Backend::Postgres => "SELECT CAST(pg_backend_pid() AS bigint)",
        Backend::MySql => "SELECT CAST(CONNECTION_ID() AS SIGNED)",
    };
    let db = connect(&database.url, 1).await;
    let session = number(&db, own).await;
    let tx = db.begin().await.unwrap();
    outbox_seaorm::Outbox::default().append_envelopes(&tx, &placed_many(1)).await.unwrap();
    let mut strict = DoctorOptions::default();
    strict.long_transaction = Duration::ZERO;
    let is_found = || async {
        // InnoDB tells the same again while anybody on the server asks more often than every 0.1 s.
        tokio::time::sleep(Duration::from_millis(430)).await;
        let diagnosis = look(database, &strict).await;
        let found = of_code(&diagnosis, "long-transaction");
        let ours = found.iter().find(|finding| {
            finding.what.starts_with(&format!("session {session} "))
                || finding.what.starts_with(&format!("session {session} of"))
        });
        ours.map(|finding| finding.mend.clone())
    };
    // MySQL's table of transactions is a moment behind.
    until("the transaction is found", || async { is_found().await.is_some() }).await;
    let mend = is_found().await.unwrap();
    assert!(mend.contains(&session.to_string()), "{mend}");
    assert_eq!(
        codes(&look(database, &DoctorOptions::default()).await),
        [] as [&str; 0],
        "five minutes are allowed"
    );
    tx.rollback().await.unwrap();
    until("it is gone", || async { is_found().await.is_none() }).await;
    db.close().await.unwrap();
}

async fn a_prepared_transaction_is_found(database: &TestDatabase) {
    if database.backend != Backend::Postgres
        || number(&database.db, "SELECT CAST(current_setting('max_prepared_transactions') AS bigint)").await
            == 0
    {
        return; // Others tell it as a transaction without a session; servers rarely allow it at all.
    }
    let db = connect(&database.url, 1).await;
    let name = database.url.rsplit_once('/').unwrap().1;
    execute(&db, &format!("BEGIN; DELETE FROM inbox; PREPARE TRANSACTION '{name}'")).await;
    let mut strict = DoctorOptions::default();
    strict.long_transaction = Duration::ZERO;
    let diagnosis = look(database, &strict).await;
    assert!(only(&diagnosis, "prepared-transaction").mend.contains("ROLLBACK PREPARED"), "{diagnosis:?}");
    execute(&db, &format!("ROLLBACK PREPARED '{name}'")).await;
    assert_eq!(look(database, &strict).await.findings, []);
    db.close().await.unwrap();
}

async fn what_the_login_may_not_ask_is_said(database: &TestDatabase) {
    let name = database.url.rsplit_once('/').unwrap().1;
    let role = &name[name.len() - 16..];
    let (unasked, cleanup) = match database.backend {
        Backend::Sqlite => return, // It has no logins.
        Backend::Postgres => {
            for sql in [
                &format!("DROP ROLE IF EXISTS {role}"),
                &format!("CREATE ROLE {role}"),
                &format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"),
            ] {
                execute(&database.db, sql).await;
            }
            let db = connect(&database.url, 1).await;
            execute(&db, &format!("SET ROLE {role}")).await;
            let diagnosis = examine(&SeaOrmStore::new(db.clone()), &DoctorOptions::default()).await.unwrap();
            db.close().await.unwrap();
            (diagnosis, vec![format!("DROP OWNED BY {role}"), format!("DROP ROLE {role}")])
        }
        Backend::MySql => {
            for sql in [
                &format!("DROP USER IF EXISTS {role}"),
                &format!("CREATE USER {role} IDENTIFIED BY 'x'"),
                &format!("GRANT SELECT ON {name}.* TO {role}"),
            ] {
                execute(&database.db, sql).await;
            }
            let (_, place) = database.url.rsplit_once('@').unwrap();
            let db = connect(&format!("mysql://{role}:x@{place}"), 1).await;
            let diagnosis = examine(&SeaOrmStore::new(db.clone()), &DoctorOptions::default()).await.unwrap();
            db.close().await.unwrap();
            (diagnosis, vec![format!("DROP USER {role}")])
        }
    };
    for sql in &cleanup {
        execute(&database.db, sql).await;
    }
    let [refused] = &unasked.unasked[..] else { panic!("{unasked:?}") };
    assert!(refused.what.starts_with("long transactions"), "{refused:?}");
    assert!(refused.why.contains("pg_read_all_stats") || refused.why.contains("PROCESS"), "{refused:?}");
    assert!(unasked.checked.contains(&"indexes") && unasked.checked.contains(&"dead letters"), "{unasked:?}");
}

async fn sqlite_without_a_write_ahead_log_is_found(database: &TestDatabase) {
    if database.backend != Backend::Sqlite {
        return;
    }
    let file = std::env::temp_dir().join(format!("obx_journal_{}.sqlite", std::process::id()));
    drop(std::fs::remove_file(&file));
    let db = Database::connect(format!("sqlite://{}?mode=rwc", file.display())).await.unwrap();
    migrate(&db, TableNames::new()).await.unwrap();
    let store = SeaOrmStore::new(db.clone());
    let diagnosis = examine(&store, &DoctorOptions::default()).await.unwrap();
    let finding = only(&diagnosis, "journal-mode");
    assert_eq!((&*finding.what, &*finding.mend), ("the journal mode is delete", "PRAGMA journal_mode = WAL"));
    execute(&db, &finding.mend).await;
    assert_eq!(examine(&store, &DoctorOptions::default()).await.unwrap().findings, []);
    db.close().await.unwrap();
    std::fs::remove_file(&file).unwrap();
}

async fn a_reader_that_holds_back_the_log_is_found(database: &TestDatabase) {
    if database.backend != Backend::Sqlite {
        return; // The others tell the transaction itself.
    }
    announce(database, "one", &["a.b"], &[]).await;
    let reader = database.connect().await;
    let tx = reader.begin().await.unwrap();
    tx.query_all_raw(Statement::from_string(sea_orm::DbBackend::Sqlite, "SELECT id FROM outbox"))
        .await
        .unwrap();
    Sql::new(database).append(&placed_many(1)).await;
    let mut strict = DoctorOptions::default();
    strict.bytes = 0;
    let diagnosis = look(database, &strict).await;
    assert!(only(&diagnosis, "log-grows").what.contains("cannot be moved"), "{diagnosis:?}");
    tx.rollback().await.unwrap();
    assert_eq!(look(database, &strict).await.findings.len(), 0);
    reader.close().await.unwrap();
}

async fn a_write_lock_that_somebody_holds_is_found(database: &TestDatabase) {
    if database.backend != Backend::Sqlite {
        return; // The others have no lock of all.
    }
    let writer = database.connect().await;
    let tx = begin_immediate(&writer).await;
    let diagnosis = look(database, &DoctorOptions::default()).await;
    only(&diagnosis, "write-lock-held");
    tx.rollback().await.unwrap();
    assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
    writer.close().await.unwrap();
}

async fn a_database_that_is_gone_is_an_error_and_no_finding(database: &TestDatabase) {
    let db = database.connect().await;
    let store = SeaOrmStore::new(db.clone());
    db.close().await.unwrap();
    let error = examine(&store, &DoctorOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
}

use super::{codes, execute, look, of_code, only, pinned};
use outbox_core::{decide::Transition, store::OutboxStore};
use outbox_seaorm::{
    SeaOrmStore, TableNames,
    doctor::{DoctorOptions, Severity, examine},
    migrate,
};
use outbox_tests::{
    conformance::{at, claim, mark},
    database::{Backend, TestDatabase, connect},
    events::placed_many,
    for_each_database, for_each_empty_database,
    subject::{Sql, Subject},
    wait::until,
};
use std::time::Duration;

for_each_empty_database! {
    missing_tables_are_found_and_the_migration_mends_them,
}

for_each_database! {
    a_migration_that_is_not_recorded_is_found,
    an_index_that_is_missing_is_found_and_the_command_mends_it,
    an_index_on_other_columns_is_found,
    an_index_that_was_not_built_to_the_end_is_found,
    an_index_on_what_a_claim_changes_is_found,
    rows_that_locks_need_are_missed_and_the_command_mends_it,
    rows_that_no_purge_has_deleted_are_found,
    dead_versions_and_a_grown_index_are_found,
    free_space_that_nobody_gives_back_is_found,
}

async fn missing_tables_are_found_and_the_migration_mends_them(database: &TestDatabase) {
    let tables = TableNames::new().prefix("it's ");
    let store = SeaOrmStore::with_tables(database.db.clone(), tables);
    let diagnosis = examine(&store, &DoctorOptions::default()).await.unwrap();
    let finding = only(&diagnosis, "tables-missing");
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.mend, r"run your Migrator, or `outbox --prefix 'it'\''s ' migrate up`");
    migrate(&database.db, tables).await.unwrap();
    assert_eq!(examine(&store, &DoctorOptions::default()).await.unwrap().findings, []);
}

async fn a_migration_that_is_not_recorded_is_found(database: &TestDatabase) {
    execute(&database.db, "DELETE FROM outbox_migrations WHERE version LIKE '%control'").await;
    let diagnosis = look(database, &DoctorOptions::default()).await;
    assert!(only(&diagnosis, "migration-missing").what.ends_with("create_outbox_control"), "{diagnosis:?}");
    migrate(&database.db, TableNames::new()).await.unwrap();
    assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
    // A Migrator may record them under any name.
    execute(&database.db, "DROP TABLE outbox_migrations").await;
    assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
}

fn drop_index(database: &TestDatabase, index: &str, table: &str) -> String {
    match database.backend {
        Backend::MySql => format!("ALTER TABLE {table} DROP KEY {index}"),
        _ => format!("DROP INDEX {index}"),
    }
}

async fn an_index_that_is_missing_is_found_and_the_command_mends_it(database: &TestDatabase) {
    for (index, table) in [
        ("outbox_live", "outbox"),
        ("outbox_replay_of", "outbox"),
        ("outbox_attempts_row", "outbox_attempts"),
        ("inbox_consumed_at", "inbox"),
        ("outbox_keys_locked_at", "outbox_keys"),
    ] {
        execute(&database.db, &drop_index(database, index, table)).await;
        let diagnosis = look(database, &DoctorOptions::default()).await;
        let finding = only(&diagnosis, "index-missing");
        assert!(finding.what.starts_with(&format!("index {index} on (")), "{finding:?}");
        execute(&database.db, &finding.mend.clone()).await;
        assert_eq!(look(database, &DoctorOptions::default()).await.findings, [], "{index}");
    }
    if database.backend == Backend::Postgres {
        execute(&database.db, "ALTER TABLE outbox DROP CONSTRAINT outbox_message_id").await;
        let diagnosis = look(database, &DoctorOptions::default()).await;
        execute(&database.db, &only(&diagnosis, "index-missing").mend).await;
        assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
    }
}

async fn an_index_on_other_columns_is_found(database: &TestDatabase) {
    // On one connection: others of SQLite's do not know yet that it is gone.
    let db = connect(&database.url, 1).await;
    execute(&db, &drop_index(database, "outbox_attempts_row", "outbox_attempts")).await;
    execute(&db, "CREATE INDEX outbox_attempts_row ON outbox_attempts (id, outbox_id)").await;
    db.close().await.unwrap();
    let diagnosis = look(database, &DoctorOptions::default()).await;
    let finding = only(&diagnosis, "index-differs");
    assert_eq!(finding.what, "index outbox_attempts_row is on (id, outbox_id) instead of (outbox_id, id)");
    assert!(finding.mend.starts_with("drop index outbox_attempts_row, then `"), "{finding:?}");
}

async fn an_index_that_was_not_built_to_the_end_is_found(database: &TestDatabase) {
    if database.backend != Backend::Postgres {
        return; // Only PostgreSQL leaves one behind.
    }
    let sql = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = CAST('outbox_live' AS regclass)";
    execute(&database.db, sql).await;
    let diagnosis = look(database, &DoctorOptions::default()).await;
    let finding = only(&diagnosis, "index-invalid");
    assert_eq!(finding.mend, "REINDEX INDEX CONCURRENTLY \"outbox_live\"");
    execute(&database.db, &finding.mend).await;
    assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
}

async fn an_index_on_what_a_claim_changes_is_found(database: &TestDatabase) {
    if database.backend != Backend::Postgres {
        return; // HOT updates are PostgreSQL's.
    }
    execute(&database.db, "CREATE INDEX harmless ON outbox (correlation_id)").await;
    assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
    for sql in [
        "CREATE INDEX mine ON outbox (status)",
        "CREATE INDEX mine ON outbox (id) WHERE status = 'dead'",
        "CREATE INDEX mine ON outbox (id) INCLUDE (claimed_by)",
    ] {
        execute(&database.db, sql).await;
        let diagnosis = look(database, &DoctorOptions::default()).await;
        let finding = only(&diagnosis, "index-ends-hot");
        assert!(finding.what.starts_with("index mine names "), "{finding:?}");
        execute(&database.db, &finding.mend).await;
    }
    assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
}

async fn rows_that_locks_need_are_missed_and_the_command_mends_it(database: &TestDatabase) {
    execute(&database.db, "DELETE FROM outbox_control WHERE kind = 'lock'").await;
    execute(&database.db, "DELETE FROM outbox_lanes WHERE lane = 7").await;
    let diagnosis = look(database, &DoctorOptions::default()).await;
    assert_eq!(codes(&diagnosis), ["purge-lock-missing", "lanes-missing"]);
    for finding in &diagnosis.findings {
        assert_eq!(finding.severity, Severity::Error);
        execute(&database.db, &finding.mend).await;
    }
    assert_eq!(look(database, &DoctorOptions::default()).await.findings, []);
    assert_eq!(database.count("outbox_lanes").await, 256);
}

async fn rows_that_no_purge_has_deleted_are_found(database: &TestDatabase) {
    const DAY: i64 = 86_400;
    let subject = Sql::new(database);
    subject.append(&placed_many(3)).await;
    let (token, rows) = claim(&subject, 3, at(0)).await;
    mark(&subject, token, &rows, &Transition::Dispatched, at(0)).await;
    assert_eq!(look(database, &pinned(8 * DAY)).await.findings, [], "a day is left to the purge");
    let diagnosis = look(database, &pinned(8 * DAY + 1)).await;
    let finding = only(&diagnosis, "purge-behind");
    assert_eq!(
        finding.what,
        "3 dispatched rows older than the retention of 7 days, the first since 2040-01-01 00:00:00 UTC"
    );
    assert_eq!(finding.mend, "outbox purge --older-than 7d");
    let mut longer = pinned(8 * DAY + 1);
    longer.retention = Duration::from_hours(24 * 30);
    assert_eq!(look(database, &longer).await.findings, []);
    let purge = outbox_core::store::Purge {
        finished: outbox_core::store::Finished::Dispatched,
        older_than: Duration::from_hours(24 * 7),
        limit: 10,
        now: at(8 * DAY + 1),
    };
    assert_eq!(subject.store().purgeable(&purge).await.unwrap(), 3);
    assert_eq!(subject.store().purge(&purge).await.unwrap().rows, 3);
    assert_eq!(subject.store().purgeable(&purge).await.unwrap(), 0);
    assert_eq!(look(database, &pinned(8 * DAY + 1)).await.findings, []);
}

async fn dead_versions_and_a_grown_index_are_found(database: &TestDatabase) {
    if database.backend != Backend::Postgres {
        return; // The others keep old versions elsewhere, or none.
    }
    let mut strict = DoctorOptions::default();
    strict.bytes = 0;
    let diagnosis = look(database, &strict).await;
    assert_eq!(codes(&diagnosis), ["index-grown", "index-grown"], "pages without a row");
    assert!(
        diagnosis.findings[0].mend.starts_with("REINDEX INDEX CONCURRENTLY \"outbox_live"),
        "{diagnosis:?}"
    );
    let subject = Sql::new(database);
    subject.append(&placed_many(50)).await;
    // A session that ends writes its statistics at once; others take up to a minute.
    let db = connect(&database.url, 1).await;
    execute(&db, "DELETE FROM outbox").await;
    db.close().await.unwrap();
    let mut strict = DoctorOptions::default();
    strict.dead_versions = 10;
    until("the dead versions are counted", || async {
        !of_code(&look(database, &strict).await, "dead-row-versions").is_empty()
    })
    .await;
    let diagnosis = look(database, &strict).await;
    let finding = only(&diagnosis, "dead-row-versions");
    assert!(finding.what.contains("table \"outbox\" has 50 dead versions"), "{finding:?}");
    assert_eq!(finding.mend, "VACUUM (VERBOSE, ANALYZE) \"outbox\"");
    let db = connect(&database.url, 1).await;
    execute(&db, &finding.mend).await;
    db.close().await.unwrap();
    until("the cleanup is counted", || async { look(database, &strict).await.findings.is_empty() }).await;
}

async fn free_space_that_nobody_gives_back_is_found(database: &TestDatabase) {
    if database.backend == Backend::Postgres {
        return; // Dead versions tell it there.
    }
    let columns = "message_id, event_type, event_version, payload, headers, occurred_at";
    if database.backend == Backend::Sqlite {
        let large = "x".repeat(500_000);
        for n in 10..40 {
            let sql = format!(
                "INSERT INTO outbox ({columns}) VALUES (x'000000000000000000000000000000{n}', 'a.b', 1, '\"{large}\"', '{{}}', '2026-01-01 00:00:00')"
            );
            execute(&database.db, &sql).await;
        }
        execute(&database.db, "DELETE FROM outbox").await;
    } else {
        // Pages of an index are free once it is dropped; those of deleted rows only when nobody on the server can see
        // the rows any more.
        let sql = format!(
            "INSERT INTO outbox ({columns})
                WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 64)
                SELECT UNHEX(MD5(a.n * 64 + b.n)), 'a.b', 1, CONCAT('\"', REPEAT(MD5(a.n * 64 + b.n), 21), '\"'), '{{}}', '2026-01-01 00:00:00'
                  FROM s AS a CROSS JOIN s AS b"
        );
        execute(&database.db, &sql).await;
        for change in ["ADD KEY large", "DROP KEY large"] {
            let each = (0..4).map(|n| match change {
                "ADD KEY large" => format!("{change}_{n} (payload(700))"),
                _ => format!("{change}_{n}"),
            });
            let sql = format!("ALTER TABLE outbox {}", each.collect::<Vec<_>>().join(", "));
            execute(&database.db, &sql).await;
        }
    }
    let mut strict = DoctorOptions::default();
    strict.bytes = 1_000_000;
    until("the free space is counted", || async {
        !of_code(&look(database, &strict).await, "free-space").is_empty()
    })
    .await;
    let diagnosis = look(database, &strict).await;
    let finding = of_code(&diagnosis, "free-space")[0];
    if database.backend == Backend::Sqlite {
        execute(&database.db, &finding.mend).await;
        assert_eq!(of_code(&look(database, &strict).await, "free-space"), [] as [&_; 0]);
    } else {
        assert_eq!(finding.mend, "OPTIMIZE TABLE `outbox`");
    }
}

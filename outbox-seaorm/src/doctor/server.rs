//! The database itself, and what else goes on in it.

use super::{
    Case, Diagnosis, Finding, Found, NotAsked,
    words::{count, sql as text},
};
use crate::{
    dialect::{Fault, LONGEST_AGE, backend_pids, begin_immediate, fault},
    sql::Holes,
    store::{check::isolation, signals::clock},
};
use chrono::Utc;
use sea_orm::{ConnectionTrait, DbBackend, DbErr, QueryResult, Statement, TransactionTrait};
use std::{collections::BTreeSet, time::Duration};

pub(super) async fn look(case: &Case<'_>, diagnosis: &mut Diagnosis) {
    diagnosis.add("clocks", clocks(case).await);
    if case.store.dialect.isolation.is_some() {
        diagnosis.add("isolation level", level(case).await);
    }
    if case.store.dialect.backend == DbBackend::Postgres {
        diagnosis.add("pooling", pooling(case).await);
    }
    let doctor = &case.store.dialect.doctor;
    if let Some(sql) = doctor.transactions {
        diagnosis.add("long transactions", transactions(case, sql).await);
    }
    if let Some(sql) = doctor.sees_all {
        // Said only where something may have been overlooked.
        if let Err(refused) = sees_all(case, sql).await {
            diagnosis.add("long transactions of other logins", Err(refused));
        }
    }
    if let Some(sql) = doctor.prepared {
        diagnosis.add("prepared transactions", prepared(case, sql).await);
    }
    if let Some(sql) = doctor.slots {
        diagnosis.add("replication slots", slots(case, sql).await);
    }
    if let (Some(journal), Some(checkpoint)) = (doctor.journal_mode, doctor.checkpoint) {
        diagnosis.add("journal mode", journal_mode(case, journal).await);
        diagnosis.add("the log", log(case, checkpoint).await);
        diagnosis.add("the write lock", write_lock(case).await);
    }
}

async fn clocks(case: &Case<'_>) -> Found {
    let before = Utc::now();
    let theirs = clock(case.store, case.options.now).await?;
    let after = Utc::now();
    // Halfway between question and answer; half of the way is what is not known.
    let ours = before + (after - before) / 2;
    let apart = (theirs - ours).abs().to_std().unwrap_or_default();
    let unknown = ((after - before) / 2).to_std().unwrap_or_default();
    if apart <= case.options.clock_skew.saturating_add(unknown) {
        return Ok(Vec::new());
    }
    let direction = if theirs > ours { "ahead of" } else { "behind" };
    Ok(vec![Finding::warning(
        "clock-skew",
        format!("the database's clock is {:.1} s {direction} this machine's", apart.as_secs_f64()),
        "due times are the database's alone and stay right, but `occurred_at` and logs do not fit them",
        "let both machines follow one time server (`chronyc tracking`, `timedatectl`)".to_owned(),
    )])
}

async fn level(case: &Case<'_>) -> Found {
    let level = isolation(case.store).await?.unwrap_or_default().to_ascii_uppercase().replace('-', " ");
    let is_strict = case.store.dialect.doctor.strict_levels.contains(&&*level);
    let finding = || {
        Finding::warning(
            "isolation",
            format!("transactions of this login are {level} unless they say otherwise"),
            "relays set their own level, but saves that meet fail or wait instead of passing each other",
            case.store.dialect.doctor.relax.to_owned(),
        )
    };
    Ok(is_strict.then(finding).into_iter().collect())
}

async fn pooling(case: &Case<'_>) -> Found {
    Ok(pooled(&backend_pids(&case.store.db).await?).into_iter().collect())
}

/// One connection is one process of the server, unless somebody stands between.
fn pooled(pids: &[i32]) -> Option<Finding> {
    let different: BTreeSet<_> = pids.iter().collect();
    (different.len() > 1).then(|| {
        Finding::warning(
            "statement-pooling",
            format!("{} of one connection were answered by {} processes", count(pids.len() as u64, "statement"), different.len()),
            "a pooler gives each transaction another session: prepared statements are lost, and migrations may run at once",
            "connect relays and migrations to the server itself, or let the pooler pool sessions (pgbouncer: `pool_mode = session`)".to_owned(),
        )
    })
}

fn seconds(span: Duration) -> i64 {
    i64::try_from(span.min(LONGEST_AGE).as_secs()).unwrap_or(i64::MAX)
}

async fn asked(case: &Case<'_>, sql: &str) -> Result<Vec<QueryResult>, DbErr> {
    let holes = Holes::default().with("seconds", seconds(case.options.long_transaction));
    case.store.db.query_all_raw(case.store.statement(sql, &holes)).await
}

async fn transactions(case: &Case<'_>, sql: &str) -> Found {
    let mut findings = Vec::new();
    for row in asked(case, sql).await? {
        let session: i64 = row.try_get("", "session")?;
        let who = row.try_get::<Option<String>>("", "who")?.filter(|who| !who.is_empty());
        let who = who.map(|who| format!(" of {who}")).unwrap_or_default();
        let state = row.try_get::<Option<String>>("", "state")?.unwrap_or_default();
        let age: i64 = row.try_get("", "age")?;
        let mend = if session == 0 {
            case.store.dialect.doctor.end_orphan.to_owned()
        } else {
            let end = case.store.dialect.doctor.end_session.replace("{}", &session.to_string());
            format!("end it where it was begun, or `{end}`")
        };
        findings.push(Finding::warning(
            "long-transaction",
            format!("session {session}{who} has had a transaction open for {age} s ({state})"),
            "the database keeps every version of a row that it may still want to see, so claims walk over more and more of them",
            mend,
        ));
    }
    Ok(findings)
}

async fn sees_all(case: &Case<'_>, sql: &str) -> Result<(), NotAsked> {
    let row = case.store.db.query_one_raw(Statement::from_string(DbBackend::Postgres, sql)).await?;
    if row.map_or(Ok(false), |row| row.try_get("", "sees_all"))? {
        return Ok(());
    }
    Err(NotAsked("this login may not see them: GRANT pg_read_all_stats TO it".to_owned()))
}

async fn prepared(case: &Case<'_>, sql: &str) -> Found {
    let mut findings = Vec::new();
    for row in asked(case, sql).await? {
        let (name, age): (String, i64) = (row.try_get("", "name")?, row.try_get("", "age")?);
        findings.push(Finding::warning(
            "prepared-transaction",
            format!("the prepared transaction {name:?} has been open for {age} s"),
            "it survives its session, keeps its locks, and holds back the cleanup of all tables",
            case.store.dialect.doctor.end_prepared.replace("{}", &text(&name)),
        ));
    }
    Ok(findings)
}

async fn slots(case: &Case<'_>, sql: &str) -> Found {
    let mut findings = Vec::new();
    for row in asked(case, sql).await? {
        let (name, holds_rows): (String, bool) = (row.try_get("", "name")?, row.try_get("", "holds_rows")?);
        let why = if holds_rows {
            "it holds back the cleanup of all tables, and keeps the log for a reader that does not come"
        } else {
            "it keeps the log for a reader that does not come, until the disk is full"
        };
        findings.push(Finding::warning(
            "replication-slot",
            format!("nobody reads the replication slot {name:?}"),
            why,
            format!(
                "start its reader, or `{}`",
                case.store.dialect.doctor.drop_slot.replace("{}", &text(&name))
            ),
        ));
    }
    Ok(findings)
}

/// One of SQLite's own commands, on the schema of the tables.
fn on_schema(case: &Case<'_>, sql: &str) -> String {
    let schema = case.store.names.quoted_schema().map(|schema| format!("{schema}.")).unwrap_or_default();
    sql.replace("{schema}", &schema)
}

pub(super) async fn pragma(case: &Case<'_>, sql: &str) -> Result<Option<QueryResult>, DbErr> {
    let statement = Statement::from_string(DbBackend::Sqlite, on_schema(case, sql));
    case.store.db.query_one_raw(statement).await
}

async fn journal_mode(case: &Case<'_>, sql: &str) -> Found {
    // A connection that has not looked into the file yet tells the mode of an empty one, so both are asked on one.
    let tx = case.store.db.begin().await?;
    let mut row = None;
    for sql in [case.store.dialect.doctor.touch, sql] {
        row = tx.query_one_raw(Statement::from_string(DbBackend::Sqlite, on_schema(case, sql))).await?;
    }
    tx.rollback().await?;
    let mode: String = row.map_or(Ok(String::new()), |row| row.try_get_by_index(0))?;
    let finding = || {
        Finding::warning(
            "journal-mode",
            format!("the journal mode is {mode}"),
            "readers and the writer wait for each other, so saves fail as busy while a relay works",
            format!("{} = WAL", on_schema(case, sql)),
        )
    };
    // A database in memory has no other mode.
    Ok((!["wal", "memory"].contains(&&*mode.to_ascii_lowercase())).then(finding).into_iter().collect())
}

/// A log that cannot be moved into the file, because somebody still reads an old state.
async fn log(case: &Case<'_>, sql: &str) -> Found {
    const PAGE: u64 = 4_096;
    let Some(row) = pragma(case, sql).await? else { return Ok(Vec::new()) };
    let (pages, moved): (i64, i64) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
    let left = u64::try_from(pages - moved).unwrap_or(0);
    let finding = || {
        Finding::warning(
            "log-grows",
            format!("{} of the write-ahead log cannot be moved into the file", count(left, "page")),
            "somebody has had a transaction open for long; the log grows until it ends, and every read gets slower",
            format!(
                "end the program that reads, or its transaction; then `{}`",
                case.store.dialect.doctor.truncate_log
            ),
        )
    };
    Ok((left > 0 && left.saturating_mul(PAGE) > case.options.bytes).then(finding).into_iter().collect())
}

async fn write_lock(case: &Case<'_>) -> Found {
    match begin_immediate(&case.store.db).await {
        Ok(tx) => {
            tx.rollback().await?;
            Ok(Vec::new())
        }
        Err(error) if fault(&error) == Fault::Conflict => Ok(vec![Finding::warning(
            "write-lock-held",
            "somebody has held the write lock for as long as this connection waits".to_owned(),
            "nothing can be saved, claimed or marked meanwhile",
            "end the program that writes, or its transaction (`lsof` on the file tells which it is)"
                .to_owned(),
        )]),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::pooled;

    #[test]
    fn statements_of_one_connection_that_several_processes_answer_tell_a_pooler() {
        assert_eq!(pooled(&[]), None);
        assert_eq!(pooled(&[7, 7, 7]), None);
        let finding = pooled(&[7, 8, 7]).unwrap();
        assert_eq!((finding.code, finding.what.contains("2 processes")), ("statement-pooling", true));
    }
}

//! The tables: whether they are there, whole, and as small as they should be.

use super::{
    Case, Diagnosis, Finding, Found,
    server::pragma,
    words::{count, time},
};
use crate::{
    dialect::ago,
    migration::{expected, migration_states},
    sql::Holes,
};
use chrono::{DateTime, Utc};
use outbox_core::StoreError;
use sea_orm::{ConnectionTrait, QueryResult};
use std::time::Duration;

/// How far rows that wait for the purge are counted.
const MAX_COUNTED: i64 = 10_000;
/// The tables that grow, as holes and as names.
const GROWING: [(&str, &str); 3] =
    [("outbox", "outbox"), ("attempts", "outbox_attempts"), ("inbox", "inbox")];
/// Bytes for each live row from which on its index counts as grown; an entry has some 80.
const BYTES_A_ROW: u64 = 2_000;

pub(super) async fn look(case: &Case<'_>, diagnosis: &mut Diagnosis) {
    diagnosis.add("the tables", Ok(Vec::new()));
    diagnosis.add("migrations", migrations(case).await);
    diagnosis.add("indexes", indexes(case).await);
    diagnosis.add("rows that locks need", seeds(case).await);
    diagnosis.add("purges", purges(case).await);
    if case.store.dialect.doctor.versions.is_some() {
        diagnosis.add("dead row versions", versions(case).await);
        diagnosis.add("growth of the live index", index_size(case).await);
    }
    let doctor = &case.store.dialect.doctor;
    if doctor.free.is_some() || doctor.pages.is_some() {
        diagnosis.add("free space", free(case).await);
    }
}

pub(super) fn missing(case: &Case<'_>, error: &StoreError) -> Finding {
    Finding::error(
        "tables-missing",
        error.to_string(),
        "nothing can be saved, and relays do not start",
        format!("run your Migrator, or `{}`", case.words.outbox("migrate up")),
    )
}

async fn migrations(case: &Case<'_>) -> Found {
    let states = migration_states(&case.store.db, case.store.names.names()).await?;
    // Where none is recorded, a Migrator records them elsewhere; that the tables are there was seen already.
    let unrecorded = states.iter().filter(|state| state.recorded_in.is_none());
    let missing: Vec<_> = unrecorded.map(|state| state.name.as_str()).collect();
    if missing.is_empty() || missing.len() == states.len() {
        return Ok(Vec::new());
    }
    Ok(vec![Finding::error(
        "migration-missing",
        format!(
            "{} not recorded as applied: {}",
            count(missing.len() as u64, "migration"),
            missing.join(", ")
        ),
        "the tables are older than this version",
        format!("run your Migrator, or `{}`", case.words.outbox("migrate up")),
    )])
}

/// An index that is there.
struct Existing {
    table: &'static str,
    name: String,
    columns: String,
    definition: String,
    is_valid: bool,
}

async fn indexes(case: &Case<'_>) -> Found {
    let mut existing = Vec::new();
    for (table, name) in GROWING.into_iter().chain([("keys", "outbox_keys")]) {
        let rows = case
            .store
            .db
            .query_all_raw(case.store.statement(case.store.dialect.doctor.indexes, &table_holes(case, name)));
        for row in rows.await? {
            existing.push(Existing {
                table,
                name: row.try_get("", "name")?,
                columns: row.try_get::<Option<String>>("", "columns")?.unwrap_or_default(),
                definition: row.try_get("", "definition")?,
                is_valid: row.try_get("", "is_valid")?,
            });
        }
    }
    let expected = expected::indexes(case.store.dialect.backend);
    let mut findings: Vec<_> = expected.iter().filter_map(|index| compared(case, index, &existing)).collect();
    let names = case.store.names.names();
    let is_ours = |name: &str| expected.iter().any(|index| names.raw(&index.name).eq_ignore_ascii_case(name));
    let foreign = existing.iter().filter(|index| index.table == "outbox" && !is_ours(&index.name));
    findings.extend(foreign.filter_map(|index| against_hot(case, index)));
    Ok(findings)
}

fn compared(case: &Case<'_>, index: &expected::Index, existing: &[Existing]) -> Option<Finding> {
    let raw = case.store.names.names().raw(&index.name);
    let qualified = case.store.names.qualified(&index.name);
    let doctor = &case.store.dialect.doctor;
    let (from, to) = doctor.create_online;
    let create = case.store.names.fill(&index.create).replace(from, to);
    let found =
        existing.iter().find(|found| found.table == index.table && found.name.eq_ignore_ascii_case(&raw));
    let Some(found) = found else {
        return Some(Finding::error(
            "index-missing",
            format!("index {raw} on ({}) is missing", index.columns),
            "what it is for walks the whole table instead, or is not guarded any more",
            create,
        ));
    };
    if !found.is_valid {
        return Some(Finding::error(
            "index-invalid",
            format!("index {raw} is invalid: building it was broken off"),
            "it is kept up to date, and used by nothing",
            format!("{}{qualified}", doctor.rebuild),
        ));
    }
    let plain = |columns: &str| columns.replace(['"', '`', ' '], "").to_ascii_lowercase();
    (plain(&found.columns) != plain(&index.columns)).then(|| {
        Finding::error(
            "index-differs",
            format!("index {raw} is on ({}) instead of ({})", found.columns, index.columns),
            "what it is for walks the whole table instead, or is not guarded any more",
            format!("drop index {raw}, then `{create}`"),
        )
    })
}

/// What a claim changes.
const CLAIMED: [&str; 7] =
    ["status", "attempts", "claims", "claimed_by", "lease_token", "lease_expires_at", "isolated"];

/// An index that makes every claim write into all indexes. Only PostgreSQL tells the definition.
fn against_hot(case: &Case<'_>, index: &Existing) -> Option<Finding> {
    let words = index.definition.split(|c: char| !c.is_alphanumeric() && c != '_');
    let named = words.skip_while(|word| *word != "USING").find(|word| CLAIMED.contains(word))?;
    Some(Finding::warning(
        "index-ends-hot",
        format!("index {} names {named}, which every claim changes", index.name),
        "each claim and mark then writes into all indexes of the table, which grow with it",
        format!("{}{}", case.store.dialect.doctor.drop_online, case.store.names.in_schema(&index.name)),
    ))
}

fn table_holes(case: &Case<'_>, name: &str) -> Holes {
    let names = &case.store.names;
    Holes::default()
        .with("table", names.qualified(name))
        .with("bare", names.names().raw(name))
        .with("schema", names.names().schema_name())
}

async fn number(case: &Case<'_>, sql: &str) -> Result<i64, super::NotAsked> {
    let row = case.store.db.query_one_raw(case.store.statement(sql, &Holes::default())).await?;
    Ok(row.map_or(Ok(0), |row| row.try_get("", "n"))?)
}

async fn seeds(case: &Case<'_>) -> Found {
    let mut findings = Vec::new();
    let seed =
        |table| expected::seed(&case.store.names, case.store.dialect.backend, table).unwrap_or_default();
    let lock = "SELECT COUNT(*) AS n FROM {control} WHERE kind = 'lock' AND name = 'purge'";
    if number(case, lock).await? == 0 {
        findings.push(Finding::error(
            "purge-lock-missing",
            format!("{} has no row ('lock', 'purge')", case.store.names.qualified("outbox_control")),
            "every purge takes it for held by another one, so nothing is purged",
            seed("control"),
        ));
    }
    let lanes = number(case, "SELECT COUNT(*) AS n FROM {lanes}").await?;
    if lanes != 256 {
        findings.push(Finding::error(
            "lanes-missing",
            format!("{} has {lanes} rows instead of 256", case.store.names.qualified("outbox_lanes")),
            "ordered rows of a lane that is missing are never claimed",
            seed("lanes"),
        ));
    }
    Ok(findings)
}

async fn purges(case: &Case<'_>) -> Found {
    let sql = "SELECT COUNT(*) AS n, MIN(finished_at) AS since
          FROM (SELECT finished_at FROM {outbox}
                 WHERE finished_at < :before AND status = 'dispatched'
                 ORDER BY finished_at
                 LIMIT :limit) AS old";
    let day = Duration::from_hours(24);
    let before = ago(case.at, case.options.retention.saturating_add(day));
    let holes = Holes::default().with("before", case.store.dialect.time(before)).with("limit", MAX_COUNTED);
    let row = case.store.db.query_one_raw(case.store.statement(sql, &holes)).await?;
    let Some(row) = row else { return Ok(Vec::new()) };
    let (n, since): (i64, Option<DateTime<Utc>>) = (row.try_get("", "n")?, row.try_get("", "since")?);
    let more = if n == MAX_COUNTED { "at least " } else { "" };
    let days = case.options.retention.as_secs() / 86_400;
    Ok(since
        .map(|since| {
            Finding::warning(
                "purge-behind",
                format!(
                    "{more}{} older than the retention of {}, the first since {}",
                    count(n.unsigned_abs(), "dispatched row"),
                    count(days, "day"),
                    time(since)
                ),
                "no relay purges, or purges do not keep up; the table grows",
                case.words.outbox(format!("purge --older-than {days}d")),
            )
        })
        .into_iter()
        .collect())
}

async fn versions(case: &Case<'_>) -> Found {
    let Some(sql) = case.store.dialect.doctor.versions else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for (_, name) in GROWING {
        let statement = case.store.statement(sql, &table_holes(case, name));
        let Some(row) = case.store.db.query_one_raw(statement).await? else { continue };
        let cleaned: Option<DateTime<Utc>> = row.try_get("", "cleaned")?;
        let (live, dead) = (bytes(&row, "live")?, bytes(&row, "dead")?);
        if dead > case.options.dead_versions && dead > live {
            let table = case.store.names.qualified(name);
            findings.push(Finding::warning(
                "dead-row-versions",
                format!(
                    "table {table} has {dead} dead versions of rows beside {live} live ones; cleaned up last: {}",
                    cleaned.map_or_else(|| "never".to_owned(), time)
                ),
                "claims walk over them; autovacuum is off, too slow, or held back by an old transaction",
                format!("{}{table}", case.store.dialect.doctor.clean),
            ));
        }
    }
    Ok(findings)
}

async fn index_size(case: &Case<'_>) -> Found {
    let Some(sql) = case.store.dialect.doctor.index_size else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for name in ["outbox_live", "outbox_live_key"] {
        let index = case.store.names.qualified(name);
        let holes = Holes::default().with("index", index.as_str());
        let Some(row) = case.store.db.query_one_raw(case.store.statement(sql, &holes)).await? else {
            continue;
        };
        let (size, rows) = (bytes(&row, "bytes")?, bytes(&row, "n")?);
        if size > case.options.bytes && size > rows.saturating_mul(BYTES_A_ROW) {
            findings.push(Finding::warning(
                "index-grown",
                format!("index {index} has {size} bytes for some {rows} live rows"),
                "it has grown with a backlog that is gone, and claims read it",
                format!("{}{index}", case.store.dialect.doctor.rebuild),
            ));
        }
    }
    Ok(findings)
}

/// Space that rows have left behind, where the database tells it: in each table, or in the file.
async fn free(case: &Case<'_>) -> Found {
    let doctor = &case.store.dialect.doctor;
    let mut found = Vec::new();
    if let Some(sql) = doctor.free {
        for (_, name) in GROWING {
            let statement = case.store.statement(sql, &table_holes(case, name));
            let Some(row) = case.store.db.query_one_raw(statement).await? else { continue };
            let table = case.store.names.qualified(name);
            let mend = format!("{}{table}", doctor.shrink);
            found.push((format!("table {table}"), bytes(&row, "used")?, bytes(&row, "free")?, mend));
        }
    }
    if let Some(sql) = doctor.pages {
        let mut numbers = [0; 3];
        for (number, sql) in numbers.iter_mut().zip(sql) {
            let row = pragma(case, sql).await?;
            *number = row.map_or(Ok(0), |row| row.try_get_by_index::<i64>(0))?.unsigned_abs();
        }
        let [size, pages, free] = numbers;
        let used = pages.saturating_sub(free).saturating_mul(size);
        found.push((
            "the database's file".to_owned(),
            used,
            free.saturating_mul(size),
            doctor.shrink.to_owned(),
        ));
    }
    found.retain(|(_, used, free, _)| *free > case.options.bytes && free > used);
    let finding = |(what, used, free, mend): (String, u64, u64, String)| {
        Finding::warning(
            "free-space",
            format!("{what} uses {used} bytes and holds {free} free"),
            "it has grown with rows that are gone; the space is used again, but not given back",
            mend,
        )
    };
    Ok(found.into_iter().map(finding).collect())
}

fn bytes(row: &QueryResult, column: &str) -> Result<u64, sea_orm::DbErr> {
    Ok(u64::try_from(row.try_get::<i64>("", column)?).unwrap_or(0))
}

//! The connection and the tables.

use crate::{
    args::Place,
    failure::Failure,
    redact::{place, redact},
};
use outbox_seaorm::{SeaOrmStore, TableNames};
use sea_orm::{ConnectOptions, Database, DatabaseConnection};
use std::time::Duration;

/// The URLs that are understood, by their beginning.
const SCHEMES: [&str; 5] = ["postgres://", "postgresql://", "mysql://", "mariadb://", "sqlite:"];

/// What a verb works on.
pub(crate) struct Target {
    pub(crate) db: DatabaseConnection,
    pub(crate) tables: TableNames,
    pub(crate) store: SeaOrmStore,
    /// The database, without a login.
    pub(crate) place: String,
}

pub(crate) async fn connect(at: &Place) -> Result<Target, Failure> {
    let tables = tables(at)?;
    let Some(url) = at.database_url.as_deref().filter(|url| !url.is_empty()) else {
        return Err(Failure::usage(
            "no database is named: set DATABASE_URL, or say --database-url postgres://user@host/database",
        ));
    };
    if !SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
        return Err(Failure::usage(format!(
            "the database URL begins with none of {}; write it as scheme://user:password@host/database (what it holds is not shown, because of the password)",
            SCHEMES.join(", ")
        )));
    }
    let place = place(url);
    // SQLite would make an empty file of a name that is not there; only `mode=rwc` asks for that.
    let url = url.strip_prefix("mariadb://").map_or(url.to_owned(), |rest| format!("mysql://{rest}"));
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(2)
        .connect_timeout(at.timeout.0)
        .acquire_timeout(at.timeout.0)
        .sqlx_logging(false);
    let wait = at.timeout.0.saturating_add(Duration::from_secs(1));
    let connected = tokio::time::timeout(wait, Database::connect(options)).await;
    let unreachable = |why: &str| {
        Failure::database(format!(
            "the database {place} cannot be reached: {why}; check its address, its login, and that it runs"
        ))
    };
    let db = match connected {
        Ok(Ok(db)) => db,
        Ok(Err(error)) => return Err(unreachable(&redact(&error.to_string()))),
        Err(_) => return Err(unreachable("it does not answer")),
    };
    let store = SeaOrmStore::with_tables(db.clone(), tables);
    Ok(Target { db, tables, store, place })
}

/// The names live as long as the process, which runs one command.
fn tables(at: &Place) -> Result<TableNames, Failure> {
    let (schema, prefix) = (at.schema.as_deref(), at.prefix.as_deref().unwrap_or_default());
    if schema.is_some_and(|schema| schema.is_empty() || schema.contains('\0')) {
        return Err(Failure::usage(
            "--schema is empty or has NUL in it; leave it out for the connection's own schema",
        ));
    }
    if prefix.len() > 30 || prefix.contains('\0') {
        return Err(Failure::usage("--prefix has more than 30 bytes or NUL in it"));
    }
    let names = TableNames::new().prefix(Box::leak(prefix.to_owned().into_boxed_str()));
    Ok(match schema {
        Some(schema) => names.schema(Box::leak(schema.to_owned().into_boxed_str())),
        None => names,
    })
}

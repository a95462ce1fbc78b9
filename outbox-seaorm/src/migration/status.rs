//! Which migrations were applied, and who has recorded it.

use super::{STANDALONE, steps::StepFile};
use crate::{
    dialect::{Fault, fault},
    tables::TableNames,
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement};

/// Where SeaORM's `Migrator` records what it has applied, unless it was told otherwise.
const MIGRATOR: &str = "seaql_migrations";

/// One migration of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationState {
    /// Its name.
    pub name: String,
    /// The table in which it is recorded: `outbox_migrations` (with its prefix) where [`migrate`](super::migrate) applied
    /// it, `seaql_migrations` where a `Migrator` did. `None`: in neither, so it was not applied, or by a `Migrator` with a
    /// table of its own name.
    pub recorded_in: Option<String>,
}

/// The migrations of the outbox, in the order in which they are applied, and where they are recorded. Changes nothing.
///
/// # Errors
///
/// The database's error; a missing table of records is none.
pub async fn migration_states(
    db: &DatabaseConnection,
    tables: TableNames,
) -> Result<Vec<MigrationState>, DbErr> {
    let backend = db.get_database_backend();
    let names = tables.for_backend(backend);
    let standalone = tables.raw(STANDALONE);
    // MySQL and SQLite keep it in the database of the connection; see `migrate`.
    let qualified =
        if backend == DbBackend::Postgres { names.qualified(STANDALONE) } else { names.bare(STANDALONE) };
    let recorded =
        [(standalone, recorded(db, &qualified).await?), (MIGRATOR.to_owned(), recorded(db, MIGRATOR).await?)];
    let state = |file: StepFile| {
        let name = file.name(tables);
        let found = recorded.iter().find(|(_, versions)| versions.contains(&name));
        MigrationState { recorded_in: found.map(|(table, _)| table.clone()), name }
    };
    Ok(StepFile::ALL.into_iter().map(state).collect())
}

async fn recorded(db: &DatabaseConnection, table: &str) -> Result<Vec<String>, DbErr> {
    let sql = format!("SELECT version FROM {table}");
    match db.query_all_raw(Statement::from_string(db.get_database_backend(), sql)).await {
        Ok(rows) => rows.iter().map(|row| row.try_get("", "version")).collect(),
        Err(error) if fault(&error) == Fault::Schema => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

//! Which migrations there are. The names are recorded in the user's table and never change.

use super::{exclusive::lock_in_transaction, script::run_script};
use crate::tables::TableNames;
use sea_orm::{ConnectionTrait, DbBackend, DbErr};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager, async_trait};

/// One released set of tables, as a script for each backend.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepFile {
    name: &'static str,
    postgres: &'static str,
    mysql: &'static str,
    sqlite: &'static str,
    /// The tables that it creates, in the order in which they are dropped.
    tables: &'static [&'static str],
}

macro_rules! script {
    ($name:literal, $file:literal, $tables:expr) => {
        StepFile {
            name: $name,
            postgres: include_str!(concat!("sql/postgres/", $file, ".sql")),
            mysql: include_str!(concat!("sql/mysql/", $file, ".sql")),
            sqlite: include_str!(concat!("sql/sqlite/", $file, ".sql")),
            tables: $tables,
        }
    };
}

impl StepFile {
    pub(super) const ALL: [Self; 4] = [
        script!("m20261130_000001_create_outbox", "outbox", &["outbox_attempts", "outbox"]),
        script!("m20261130_000002_create_inbox", "inbox", &["inbox"]),
        script!("m20261130_000003_create_outbox_ordering", "ordering", &["outbox_keys", "outbox_lanes"]),
        script!("m20261130_000004_create_outbox_control", "control", &["outbox_control"]),
    ];

    /// Its name, for some tables.
    pub(super) fn name(&self, tables: TableNames) -> String {
        tables.migration_name(self.name)
    }

    /// The script for a backend that is supported.
    pub(super) fn script(&self, backend: DbBackend) -> &'static str {
        match backend {
            DbBackend::Postgres => self.postgres,
            DbBackend::MySql => self.mysql,
            _ => self.sqlite,
        }
    }
}

/// A migration for one set of table names.
pub(super) struct Step {
    tables: TableNames,
    file: StepFile,
    name: String,
}

impl Step {
    pub(super) fn new(tables: TableNames, file: StepFile) -> Self {
        Self { tables, file, name: tables.migration_name(file.name) }
    }
}

impl MigrationName for Step {
    fn name(&self) -> &str {
        &self.name
    }
}

// The trait is declared with the lifetime elided, and async_trait needs the same here.
#[allow(elided_lifetimes_in_paths)]
#[async_trait::async_trait]
impl MigrationTrait for Step {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        let backend = manager.get_database_backend();
        if !matches!(backend, DbBackend::Postgres | DbBackend::MySql | DbBackend::Sqlite) {
            return Err(DbErr::Migration(format!("the outbox has no tables for {backend:?}")));
        }
        // `IF NOT EXISTS` is not enough on PostgreSQL: two sessions that create one table at once collide.
        if backend == DbBackend::Postgres {
            lock_in_transaction(db).await?;
        }
        run_script(db, self.file.script(backend), &self.tables).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let names = self.tables.for_backend(manager.get_database_backend());
        for table in self.file.tables {
            let drop = format!("DROP TABLE IF EXISTS {}", names.qualified(table));
            manager.get_connection().execute_unprepared(&drop).await?;
        }
        Ok(())
    }
}

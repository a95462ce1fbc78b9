//! The tables, as SeaORM migrations for a `Migrator` of the user's own.
//!
//! The row format is a public interface: a migration is never edited once it is released, changes come as new ones.

mod exclusive;
pub(crate) mod expected;
mod script;
mod status;
mod steps;

pub use exclusive::exclusively;
pub use status::{MigrationState, migration_states};

use crate::tables::TableNames;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr};
use sea_orm_migration::{MigrationTrait, async_trait, migrator::MigratorTraitSelf, sea_query::IntoIden};
use steps::{Step, StepFile};

/// The migrations of the outbox, for the default table names. Add them to your own `Migrator`:
///
/// ```
/// use sea_orm_migration::{MigrationTrait, MigratorTrait};
///
/// struct Migrator;
///
/// impl MigratorTrait for Migrator {
///     fn migrations() -> Vec<Box<dyn MigrationTrait>> {
///         let mut migrations: Vec<Box<dyn MigrationTrait>> = vec![/* your own */];
///         migrations.extend(outbox_seaorm::migrations());
///         migrations
///     }
/// }
/// ```
///
/// Each is idempotent. When several processes may start at once, run the `Migrator` through [`exclusively`].
pub fn migrations() -> Vec<Box<dyn MigrationTrait>> {
    migrations_for(TableNames::new())
}

/// As [`migrations`], for other table names. Two outboxes in one database have different migration names.
pub fn migrations_for(tables: TableNames) -> Vec<Box<dyn MigrationTrait>> {
    let step = |file| Box::new(Step::new(tables, file)) as Box<dyn MigrationTrait>;
    StepFile::ALL.into_iter().map(step).collect()
}

/// Creates or updates the tables, for programs without a `Migrator` of their own. Safe to call from any number of
/// processes at once, and again at every start.
///
/// What was applied is kept in a table of its own, `outbox_migrations`, with the prefix of `tables`. On PostgreSQL it
/// is in their schema; MySQL and SQLite keep it in the database of the connection.
///
/// # Errors
///
/// The database's error; on PostgreSQL and SQLite nothing is changed then.
pub async fn migrate(db: &DatabaseConnection, tables: TableNames) -> Result<(), DbErr> {
    exclusively(db, async move |tx| {
        let backend = ConnectionTrait::get_database_backend(tx);
        if let (DbBackend::Postgres, Some(schema)) = (backend, tables.for_backend(backend).quoted_schema()) {
            // SeaORM's own table has no schema in its name; until the end of the transaction this one is the default.
            tx.execute_unprepared(&format!("SET LOCAL search_path TO {schema}")).await?;
        }
        Standalone(tables).up(tx, None).await
    })
    .await
}

/// The table of what [`migrate`] has applied, without its prefix.
const STANDALONE: &str = "outbox_migrations";

struct Standalone(TableNames);

#[async_trait::async_trait]
impl MigratorTraitSelf for Standalone {
    fn migrations(&self) -> Vec<Box<dyn MigrationTrait>> {
        migrations_for(self.0)
    }

    fn migration_table_name(&self) -> sea_orm::DynIden {
        self.0.raw(STANDALONE).into_iden()
    }
}

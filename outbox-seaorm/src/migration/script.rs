//! Runs a script with its names filled in, one statement at a time: MySQL's protocol takes no more.

use crate::tables::TableNames;
use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::SchemaManagerConnection;

pub(super) async fn run_script(
    db: &SchemaManagerConnection<'_>,
    script: &str,
    tables: &TableNames,
) -> Result<(), DbErr> {
    let names = tables.for_backend(db.get_database_backend());
    for statement in statements(script) {
        db.execute_unprepared(&names.fill(&statement)).await?;
    }
    Ok(())
}

/// The statements of a script, without comments. Our scripts have no `;` and no `--` inside a text.
pub(super) fn statements(script: &str) -> Vec<String> {
    let code: Vec<_> = script.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    code.join("\n").split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::statements;

    #[test]
    fn a_script_is_its_statements_without_comments() {
        let script =
            "-- a; comment\nCREATE TABLE a (\n  -- inside\n  b int\n);\n\nINSERT INTO a VALUES (1);\n";
        assert_eq!(statements(script), ["CREATE TABLE a (\n  b int\n)", "INSERT INTO a VALUES (1)"]);
    }
}

//! What the scripts make, for those who look whether it is there: read from the scripts themselves, so that it cannot
//! differ from them.

use super::{script::statements, steps::StepFile};
use crate::tables::QuotedNames;
use sea_orm::DbBackend;

/// An index that a script makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    /// Without the prefix.
    pub(crate) name: String,
    /// Its table, as a hole names it.
    pub(crate) table: String,
    /// Its columns, with commas between.
    pub(crate) columns: String,
    /// The statement that makes it, with its holes.
    pub(crate) create: String,
}

/// The indexes of all tables, without primary keys and the unnamed ones.
pub(crate) fn indexes(backend: DbBackend) -> Vec<Index> {
    StepFile::ALL
        .into_iter()
        .flat_map(|file| statements(file.script(backend)))
        .flat_map(|sql| of(&sql))
        .collect()
}

/// The statement that fills a table with the rows which must be there, its names filled in.
pub(crate) fn seed(names: &QuotedNames, backend: DbBackend, table: &str) -> Option<String> {
    let into = format!("INTO {{{table}}}");
    let mut all = StepFile::ALL.into_iter().flat_map(|file| statements(file.script(backend)));
    all.find(|statement| statement.contains(&into)).map(|statement| names.fill(&one_line(&statement)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Those of one statement.
fn of(statement: &str) -> Vec<Index> {
    if let Some((_, rest)) = statement.split_once(" INDEX IF NOT EXISTS {") {
        let created = (|| {
            let (name, rest) = rest.split_once('}')?;
            let (_, rest) = rest.split_once("ON {")?;
            let (table, rest) = rest.split_once('}')?;
            let create = one_line(statement);
            Some(Index { name: last(name), table: last(table), columns: in_parentheses(rest)?, create })
        })();
        return created.into_iter().collect();
    }
    let Some((table, _)) =
        statement.strip_prefix("CREATE TABLE IF NOT EXISTS {").and_then(|rest| rest.split_once('}'))
    else {
        return Vec::new();
    };
    let key = |line: &str| {
        let line = line.trim().trim_end_matches(',');
        let (name, rest) = line.split_once("KEY {name:")?.1.split_once('}')?;
        let is_key = line.starts_with("KEY ") || line.starts_with("UNIQUE KEY ");
        let create = format!("ALTER TABLE {{{table}}} ADD {line}");
        is_key.then_some(())?;
        Some(Index { name: name.to_owned(), table: table.to_owned(), columns: in_parentheses(rest)?, create })
    };
    let unique = |line: &str| {
        let line = line.trim().trim_end_matches(',');
        let (_, constraint) = line.split_once("CONSTRAINT {name:")?;
        let name = constraint.strip_suffix("} UNIQUE")?;
        let column = line.split_whitespace().next()?;
        let create = format!("ALTER TABLE {{{table}}} ADD CONSTRAINT {{name:{name}}} UNIQUE ({column})");
        Some(Index { name: name.to_owned(), table: table.to_owned(), columns: column.to_owned(), create })
    };
    statement.lines().filter_map(|line| key(line).or_else(|| unique(line))).collect()
}

/// What follows the colon of a hole.
fn last(hole: &str) -> String {
    hole.rsplit(':').next().unwrap_or_default().to_owned()
}

fn in_parentheses(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('(')?;
    rest.split_once(')').map(|(inside, _)| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TableNames;

    #[test]
    fn every_index_of_the_scripts_is_known_with_its_statement() {
        for (backend, count) in [(DbBackend::Postgres, 12), (DbBackend::MySql, 10), (DbBackend::Sqlite, 11)] {
            let all = indexes(backend);
            assert_eq!(all.len(), count, "{backend:?}: {all:#?}");
            let live = all.iter().find(|index| index.name == "outbox_live").unwrap();
            assert!(live.columns.ends_with("event_type, event_version, lane, available_at, id"), "{live:?}");
            assert_eq!(live.table, "outbox");
        }
        let of_mysql = indexes(DbBackend::MySql);
        let replay = of_mysql.iter().find(|index| index.name == "outbox_replay_of").unwrap();
        assert_eq!(replay.create, "ALTER TABLE {outbox} ADD UNIQUE KEY {name:outbox_replay_of} (replay_of)");
    }

    #[test]
    fn the_rows_that_must_be_there_have_a_statement() {
        for backend in [DbBackend::Postgres, DbBackend::MySql, DbBackend::Sqlite] {
            let names = TableNames::new().prefix("x_").for_backend(backend);
            let control = seed(&names, backend, "control").unwrap();
            assert!(control.contains("x_outbox_control") && control.contains("purge"), "{control}");
            assert!(seed(&names, backend, "lanes").unwrap().contains("x_outbox_lanes"));
        }
    }
}

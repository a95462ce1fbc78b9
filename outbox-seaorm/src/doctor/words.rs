//! How commands and times are written.

use crate::tables::QuotedNames;
use chrono::{DateTime, Utc};
use std::fmt::Display;

/// Writes commands of the shell for one set of tables.
pub(super) struct Words {
    flags: String,
}

impl Words {
    pub(super) fn of(names: &QuotedNames) -> Self {
        let tables = names.names();
        let prefix = Some(tables.prefix_text()).filter(|prefix| !prefix.is_empty());
        let flag = |name: &str, value: Option<&str>| value.map(|value| format!(" --{name} {}", shell(value)));
        let flags = [flag("schema", tables.schema_name()), flag("prefix", prefix)];
        Self { flags: flags.into_iter().flatten().collect() }
    }

    /// `outbox VERB`, on these tables.
    pub(super) fn outbox(&self, verb: impl Display) -> String {
        format!("outbox{} {verb}", self.flags)
    }
}

/// A word of a shell, quoted where it has to be.
pub(super) fn shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text of SQL.
pub(super) fn sql(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

pub(super) fn list<T: Display>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(between)
}

/// `1 row`, `2 rows`.
pub(super) fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TableNames;
    use sea_orm::DbBackend;

    #[test]
    fn a_command_names_its_tables_and_survives_a_shell() {
        let names = TableNames::new().schema("my app's").prefix("x_").for_backend(DbBackend::Postgres);
        assert_eq!(Words::of(&names).outbox("skip 1"), r"outbox --schema 'my app'\''s' --prefix x_ skip 1");
        assert_eq!(
            Words::of(&TableNames::new().for_backend(DbBackend::Postgres)).outbox("status"),
            "outbox status"
        );
    }
}

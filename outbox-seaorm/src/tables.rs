//! What the tables are called.

use sea_orm::DbBackend;

/// Schema and prefix of the outbox's tables. A constant, so that aggregates can name it:
///
/// ```
/// use outbox_seaorm::TableNames;
///
/// /// `billing.app_outbox`, `billing.app_inbox`, …
/// pub const TABLES: TableNames = TableNames::new().schema("billing").prefix("app_");
/// ```
///
/// The same names must be given to the migrations, to the aggregates (`#[aggregate(tables = TABLES)]`), to
/// [`Outbox::new`](crate::Outbox::new), to [`Inbox::new`](crate::Inbox::new) and to
/// [`SeaOrmStore::with_tables`](crate::SeaOrmStore::with_tables).
/// The default is no prefix, in whatever schema the connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableNames {
    schema: Option<&'static str>,
    prefix: &'static str,
}

impl Default for TableNames {
    fn default() -> Self {
        Self::new()
    }
}

impl TableNames {
    /// The default names: `outbox`, `outbox_attempts`, `inbox`, `outbox_keys`, `outbox_lanes`, `outbox_control`.
    pub const fn new() -> Self {
        Self { schema: None, prefix: "" }
    }

    /// Puts the tables into a schema (MySQL: a database; SQLite: an attached database). It must exist.
    ///
    /// # Panics
    ///
    /// When the name is empty or contains NUL; in a constant this is a compile error.
    pub const fn schema(self, schema: &'static str) -> Self {
        assert!(!schema.is_empty(), "the schema of the outbox's tables is empty");
        assert!(!has_nul(schema), "the schema of the outbox's tables contains NUL");
        Self { schema: Some(schema), ..self }
    }

    /// Puts a prefix before each table, index and constraint.
    ///
    /// # Panics
    ///
    /// When it is longer than 30 bytes (PostgreSQL cuts names at 63) or contains NUL; in a constant this is a compile
    /// error.
    pub const fn prefix(self, prefix: &'static str) -> Self {
        assert!(prefix.len() <= 30, "the prefix of the outbox's tables is longer than 30 bytes");
        assert!(!has_nul(prefix), "the prefix of the outbox's tables contains NUL");
        Self { prefix, ..self }
    }

    pub(crate) fn schema_name(&self) -> Option<&'static str> {
        self.schema
    }

    pub(crate) fn prefix_text(&self) -> &'static str {
        self.prefix
    }

    /// A name with the prefix, as it is, unquoted.
    pub(crate) fn raw(&self, table: &str) -> String {
        format!("{}{table}", self.prefix)
    }

    /// Two outboxes in one database need different names in the table of applied migrations.
    pub(crate) fn migration_name(&self, migration: &str) -> String {
        match (self.schema, self.prefix) {
            (None, "") => migration.to_owned(),
            // Quoted, so that no two pairs have one text.
            (schema, prefix) => format!("{migration}_{:?}.{prefix:?}", schema.unwrap_or_default()),
        }
    }

    pub(crate) fn for_backend(self, backend: DbBackend) -> QuotedNames {
        QuotedNames { names: self, quote: if backend == DbBackend::MySql { '`' } else { '"' } }
    }
}

const fn has_nul(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == 0 {
            return true;
        }
        i += 1;
    }
    false
}

/// The names as a backend writes them. Always quoted: mixed case and reserved words are then just names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotedNames {
    names: TableNames,
    quote: char,
}

/// What stands for each table in our SQL.
const TABLES: [(&str, &str); 6] = [
    ("outbox", "outbox"),
    ("attempts", "outbox_attempts"),
    ("inbox", "inbox"),
    ("keys", "outbox_keys"),
    ("lanes", "outbox_lanes"),
    ("control", "outbox_control"),
];

impl QuotedNames {
    /// What was quoted.
    pub(crate) fn names(&self) -> TableNames {
        self.names
    }

    fn quoted(&self, name: &str) -> String {
        let quote = self.quote;
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }

    /// The schema, if one is named.
    pub(crate) fn quoted_schema(&self) -> Option<String> {
        self.names.schema.map(|schema| self.quoted(schema))
    }

    /// A table without its schema.
    pub(crate) fn bare(&self, name: &str) -> String {
        self.quoted(&self.names.raw(name))
    }

    /// A name that has its prefix, or needs none, with the schema.
    pub(crate) fn in_schema(&self, name: &str) -> String {
        let name = self.quoted(name);
        self.quoted_schema().map_or(name.clone(), |schema| format!("{schema}.{name}"))
    }

    /// A table or index with its schema.
    pub(crate) fn qualified(&self, name: &str) -> String {
        self.in_schema(&self.names.raw(name))
    }

    /// Fills `{outbox}` and the other tables, `{bare:table}` (without the schema), `{index:name}` (with it) and
    /// `{name:constraint}` (without it) into SQL text.
    pub(crate) fn fill(&self, sql: &str) -> String {
        let mut filled = String::with_capacity(sql.len() + 64);
        let mut rest = sql;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let hole = after.split_once('}').and_then(|(hole, after)| Some((self.hole(hole)?, after)));
            if let Some((name, after)) = hole {
                filled.push_str(&name);
                rest = after;
            } else {
                // A brace of the SQL itself, as in an empty JSON object.
                filled.push('{');
                rest = after;
            }
        }
        filled + rest
    }

    fn hole(&self, hole: &str) -> Option<String> {
        let table = |short: &str| TABLES.into_iter().find(|(name, _)| *name == short).map(|(_, table)| table);
        match hole.split_once(':') {
            None => table(hole).map(|table| self.qualified(table)),
            Some(("bare", short)) => table(short).map(|table| self.quoted(&self.names.raw(table))),
            Some(("index", name)) => Some(self.qualified(name)),
            Some(("name", name)) => Some(self.quoted(&self.names.raw(name))),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_so_that_any_name_is_just_a_name() {
        let names = TableNames::new().schema("My \"App\"").prefix("Order");
        let filled =
            names.for_backend(DbBackend::Postgres).fill("SELECT '{}' FROM {outbox}, {bare:keys}, {name:x}");
        assert_eq!(filled, r#"SELECT '{}' FROM "My ""App"""."Orderoutbox", "Orderoutbox_keys", "Orderx""#);
        assert_eq!(TableNames::new().for_backend(DbBackend::MySql).fill("{attempts}"), "`outbox_attempts`");
    }
}

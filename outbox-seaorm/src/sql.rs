//! SQL text with named holes → a statement with the backend's placeholders.

use crate::tables::QuotedNames;
use sea_orm::{DbBackend, Statement, Value};

/// What goes into a hole.
#[derive(Clone, Debug)]
pub(crate) enum Hole {
    /// A bound value.
    Value(Value),
    /// Bound values with commas between.
    Values(Vec<Value>),
    /// Rows of bound values: `(a, b), (c, d)`.
    Rows(Vec<Vec<Value>>),
    /// A text with holes of its own, once for each set of values, with commas between.
    Each(&'static str, Vec<Holes>),
    /// The same, with UNION ALL between.
    Union(&'static str, Vec<Holes>),
    /// Texts with holes of their own, with AND between.
    All(Vec<(&'static str, Holes)>),
    /// Text, never from outside.
    Sql(&'static str),
}

impl<T: Into<Value>> From<T> for Hole {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// The values of one statement, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(Vec<(&'static str, Hole)>);

impl Holes {
    pub(crate) fn with(mut self, name: &'static str, hole: impl Into<Hole>) -> Self {
        // The first would win, silently.
        debug_assert!(self.get(name).is_none(), "the hole :{name} is filled twice");
        self.0.push((name, hole.into()));
        self
    }

    fn get(&self, name: &str) -> Option<&Hole> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, hole)| hole)
    }
}

/// Builds a statement from text in which `{outbox}` stands for a table and `:name` for a hole.
///
/// PostgreSQL's `::` is not understood; write `CAST(… AS …)`. A `:` that no hole's name follows is left as it is.
pub(crate) fn statement(backend: DbBackend, names: &QuotedNames, sql: &str, holes: &Holes) -> Statement {
    let mut writer = Writer { backend, text: String::with_capacity(sql.len() + 128), values: Vec::new() };
    writer.fill(sql, holes);
    // The names come last: whatever they hold is no hole.
    Statement::from_sql_and_values(backend, names.fill(&writer.text), writer.values)
}

const COMMA: &str = ", ";

struct Writer {
    backend: DbBackend,
    text: String,
    values: Vec<Value>,
}

impl Writer {
    fn fill(&mut self, sql: &str, holes: &Holes) {
        let mut rest = sql;
        while let Some((before, after)) = rest.split_once(':') {
            self.text.push_str(before);
            let end = after.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(after.len());
            let (name, tail) = after.split_at(end);
            match holes.get(name) {
                Some(hole) => self.hole(hole),
                None => self.text.extend([":", name]),
            }
            rest = tail;
        }
        self.text.push_str(rest);
    }

    fn hole(&mut self, hole: &Hole) {
        match hole {
            Hole::Value(value) => self.bind(value),
            Hole::Values(values) => self.separated(COMMA, values, Self::bind),
            Hole::Rows(rows) => self.separated(COMMA, rows, |writer, row| {
                writer.text.push('(');
                writer.separated(COMMA, row, Self::bind);
                writer.text.push(')');
            }),
            Hole::Each(text, rows) => self.separated(COMMA, rows, |writer, holes| writer.fill(text, holes)),
            Hole::Union(text, rows) => {
                self.separated(" UNION ALL ", rows, |writer, holes| writer.fill(text, holes));
            }
            Hole::All(texts) => {
                self.separated(" AND ", texts, |writer, (text, holes)| writer.fill(text, holes));
            }
            Hole::Sql(text) => self.text.push_str(text),
        }
    }

    fn separated<T>(&mut self, separator: &str, items: &[T], write: impl Fn(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.text.push_str(separator);
            }
            write(self, item);
        }
    }

    fn bind(&mut self, value: &Value) {
        self.values.push(value.clone());
        if self.backend == DbBackend::Postgres {
            self.text.push('$');
            self.text.push_str(&self.values.len().to_string());
        } else {
            self.text.push('?');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TableNames;

    #[test]
    fn holes_become_the_backends_placeholders_in_order() {
        let holes = Holes::default()
            .with("ids", Hole::Values(vec![1.into(), 2.into()]))
            .with("routes", Hole::Rows(vec![vec!["a".into(), 1.into()], vec!["b".into(), 2.into()]]))
            .with("now", Hole::Sql("now()"))
            .with("by", "me");
        let sql = "UPDATE {outbox} SET at = :now, by = :by, t = '10:30:x' WHERE id IN (:ids) AND (t, v) IN (:routes)";
        let build = |backend| statement(backend, &TableNames::new().for_backend(backend), sql, &holes);
        let postgres = build(DbBackend::Postgres);
        assert_eq!(
            postgres.sql,
            r#"UPDATE "outbox" SET at = now(), by = $1, t = '10:30:x' WHERE id IN ($2, $3) AND (t, v) IN (($4, $5), ($6, $7))"#
        );
        assert_eq!(postgres.values.map(|values| values.0.len()), Some(7));
        assert!(build(DbBackend::MySql).sql.contains("by = ?, t = '10:30:x' WHERE id IN (?, ?)"));
    }
}

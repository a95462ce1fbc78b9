//! Objects: structs, variants, maps.

use super::{Branch, Comparison, Kind, field};
use serde_json::Value;

impl Comparison<'_> {
    pub(super) fn objects(&mut self, written: &Branch, readable: &Branch, path: &str) {
        if written.get("const").is_some() {
            return self.report(Kind::Unproven, path, "a constant object is written");
        }
        self.required(written, readable, path);
        let rest = readable.get("additionalProperties");
        for (name, schema) in written.members("properties") {
            let path = field(path, name);
            match readable.member("properties", name) {
                Some(reader) => self.schemas(schema, reader, &path),
                None if readable.get("patternProperties").is_some() => {
                    self.report(Kind::Keys, &path, "the reader takes keys of a pattern only");
                }
                None => self.further(schema, rest, &path),
            }
        }
        self.open(written, readable, path);
    }

    /// What the reader cannot do without.
    fn required(&mut self, written: &Branch, readable: &Branch, path: &str) {
        let required = readable.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if written.requires(name) {
                continue;
            }
            let path = field(path, name);
            if written.member("properties", name).is_some() {
                self.report(Kind::Optional, &path, "the field may be left out, and the reader requires it");
            } else {
                self.report(Kind::Missing, &path, "the field is not written, and the reader requires it");
            }
        }
    }

    /// A field that the reader does not name.
    fn further(&mut self, written: &Value, rest: Option<&Value>, path: &str) {
        match rest {
            Some(Value::Bool(false)) => {
                self.report(
                    Kind::Refused,
                    path,
                    "the field is written, and the reader refuses unknown fields",
                );
            }
            Some(reader) => self.schemas(written, reader, path),
            None => {}
        }
    }

    /// A writer that writes keys which are not known beforehand: a map, or a struct with one flattened into it.
    fn open(&mut self, written: &Branch, readable: &Branch, path: &str) {
        let any_key = field(path, "*");
        let closed = Value::Bool(false);
        if let Some(schema) = written.get("additionalProperties").filter(|schema| **schema != closed) {
            if readable.get("patternProperties").is_some() {
                return self.report(
                    Kind::Keys,
                    path,
                    "any key is written, and the reader takes keys of a pattern",
                );
            }
            self.map_values(schema, written, readable, path);
        }
        for (pattern, schema) in written.members("patternProperties") {
            match readable.member("patternProperties", pattern) {
                Some(reader) => self.schemas(schema, reader, &any_key),
                None if readable.get("patternProperties").is_some() => {
                    let text = format!("keys like {pattern} are written, and the reader takes others");
                    self.report(Kind::Keys, path, text);
                }
                None => self.map_values(schema, written, readable, path),
            }
        }
    }

    /// Values under any key but those of the writer's own fields: they may meet every other field of the reader, and
    /// the rest.
    fn map_values(&mut self, schema: &Value, written: &Branch, readable: &Branch, path: &str) {
        for (name, reader) in readable.members("properties") {
            if written.member("properties", name).is_none() {
                self.schemas(schema, reader, &field(path, name));
            }
        }
        match readable.get("additionalProperties") {
            Some(Value::Bool(false)) => {
                self.report(Kind::Keys, path, "any key is written, and the reader refuses unknown ones");
            }
            Some(reader) => self.schemas(schema, reader, &field(path, "*")),
            None => {}
        }
    }
}

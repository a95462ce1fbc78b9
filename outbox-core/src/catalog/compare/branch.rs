//! A schema as a list of alternatives, each of one type.

use crate::catalog::inline::target;
use serde_json::{Map, Value, json};

/// More alternatives than any enum has.
const MAX_BRANCHES: usize = 2_000;
/// References behind references.
const MAX_NESTING: usize = 64;

/// Marks two statements about one thing that this check cannot bring together.
pub(super) const CONTRADICTORY: &str = "allOf";

/// What this check understands. Words that begin with `x-` are ours, or say nothing about the JSON.
const KNOWN: [&str; 20] = [
    "additionalProperties",
    "const",
    "contentEncoding",
    "contentMediaType",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
    "type",
    "uniqueItems",
];

/// One alternative: an object of keywords, without unions and references.
#[derive(Clone, Debug)]
pub(super) struct Branch(Map<String, Value>);

/// All alternatives of a schema; `None` when there are too many.
pub(super) fn branches(root: &Value, schema: &Value) -> Option<Vec<Branch>> {
    let found = expand(root, schema, 0)?;
    Some(
        found
            .into_iter()
            .map(|mut keywords| {
                if let Some(open) = keywords.remove("unevaluatedProperties") {
                    keywords.insert("additionalProperties".to_owned(), open);
                }
                Branch(keywords)
            })
            .collect(),
    )
}

fn expand(root: &Value, schema: &Value, nesting: usize) -> Option<Vec<Map<String, Value>>> {
    let mut base = match schema {
        Value::Bool(true) => return Some(vec![Map::new()]),
        Value::Bool(false) => return Some(Vec::new()),
        Value::Object(_) if nesting == MAX_NESTING => return None,
        Value::Object(object) => object.clone(),
        _ => return None,
    };
    base.remove("$defs");
    let mut parts = Vec::new();
    if let Some(name) = target(&base) {
        base.remove("$ref");
        parts.push(expand(root, root.get("$defs")?.get(name)?, nesting + 1)?);
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(Value::Array(alternatives)) = base.remove(keyword) {
            let mut any = Vec::new();
            for alternative in &alternatives {
                any.extend(expand(root, alternative, nesting + 1)?);
            }
            parts.push(any);
        }
    }
    if let Some(Value::Array(all)) = base.remove("allOf") {
        for part in &all {
            parts.push(expand(root, part, nesting + 1)?);
        }
    }
    let mut found = split(base);
    for part in parts {
        let both = found.iter().flat_map(|one| part.iter().filter_map(move |other| merged(one, other)));
        found = both.take(MAX_BRANCHES + 1).collect();
        if found.len() > MAX_BRANCHES {
            return None;
        }
    }
    Some(found)
}

/// `enum` and lists of types as alternatives.
fn split(mut base: Map<String, Value>) -> Vec<Map<String, Value>> {
    let with = |base: &Map<String, Value>, keyword: &str, value: Value| {
        let mut copy = base.clone();
        copy.insert(keyword.to_owned(), value);
        copy
    };
    if let Some(Value::Array(values)) = base.remove("enum") {
        base.remove("type");
        return values.into_iter().map(|value| with(&base, "const", value)).collect();
    }
    if let Some(Value::Array(types)) = base.get("type").cloned() {
        return types.into_iter().map(|one| with(&base, "type", one)).collect();
    }
    vec![base]
}

/// Both at once; `None` when nothing can be both.
fn merged(one: &Map<String, Value>, other: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut both = one.clone();
    for (keyword, value) in other {
        let Some(existing) = both.get(keyword).filter(|existing| *existing != value).cloned() else {
            both.insert(keyword.clone(), value.clone());
            continue;
        };
        let value = match (keyword.as_str(), existing, value.clone()) {
            ("properties" | "patternProperties", Value::Object(mut members), Value::Object(others)) => {
                for (name, schema) in others {
                    let schema = match members.get(&name) {
                        Some(existing) if *existing != schema => json!({ "allOf": [existing, schema] }),
                        _ => schema,
                    };
                    members.insert(name, schema);
                }
                Value::Object(members)
            }
            ("required", Value::Array(mut names), Value::Array(others)) => {
                names.extend(others);
                Value::Array(names)
            }
            ("type", Value::String(a), Value::String(b)) => match (a.as_str(), b.as_str()) {
                ("integer", "number") | ("number", "integer") => "integer".into(),
                _ => return None,
            },
            ("const", ..) => return None,
            // Closed is closed, and what one side leaves open the other decides.
            ("additionalProperties" | "unevaluatedProperties", Value::Bool(open), other)
            | ("additionalProperties" | "unevaluatedProperties", other, Value::Bool(open)) => {
                if open {
                    other
                } else {
                    Value::Bool(false)
                }
            }
            _ => {
                both.insert(CONTRADICTORY.to_owned(), json!([one, other]));
                continue;
            }
        };
        both.insert(keyword.clone(), value);
    }
    Some(both)
}

impl Branch {
    pub(super) fn get(&self, keyword: &str) -> Option<&Value> {
        self.0.get(keyword)
    }

    /// A number that a keyword gives.
    pub(super) fn size(&self, keyword: &str) -> Option<u64> {
        self.get(keyword)?.as_u64()
    }

    /// The schemas that a keyword gives names.
    pub(super) fn members(&self, keyword: &str) -> impl Iterator<Item = (&str, &Value)> {
        let members = self.get(keyword).and_then(Value::as_object).into_iter().flatten();
        members.map(|(name, schema)| (name.as_str(), schema))
    }

    pub(super) fn member(&self, keyword: &str, name: &str) -> Option<&Value> {
        self.get(keyword)?.as_object()?.get(name)
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        let required = self.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|other| other == name))
    }

    /// Says nothing about the JSON.
    pub(super) fn is_any(&self) -> bool {
        self.0.keys().all(|keyword| keyword.starts_with("x-") && keyword != "x-outbox-sealed")
    }

    pub(super) fn unknown_keywords(&self) -> impl Iterator<Item = &str> {
        let known = |keyword: &&str| KNOWN.contains(keyword) || keyword.starts_with("x-");
        self.0.keys().map(String::as_str).filter(move |keyword| !known(keyword))
    }

    /// The type; of a constant, its own.
    pub(super) fn kind(&self) -> &str {
        match (self.get("const"), self.get("type").and_then(Value::as_str)) {
            (Some(Value::Null), _) => "null",
            (Some(Value::Bool(_)), _) => "boolean",
            (Some(Value::String(_)), _) => "string",
            (Some(Value::Number(number)), _) if number.is_f64() => "number",
            (Some(Value::Number(_)), _) => "integer",
            (Some(Value::Array(_)), _) => "array",
            (Some(Value::Object(_)), _) => "object",
            (None, Some(kind)) => kind,
            (None, None) if self.get("properties").is_some() || self.get("required").is_some() => "object",
            (None, None) => "any",
        }
    }

    /// The fields that tell it from other variants: they have one value.
    fn tags(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members("properties")
            .filter(|(name, _)| self.requires(name))
            .filter_map(|(name, schema)| Some((name, schema.get("const")?)))
    }

    /// The only field of an externally tagged variant.
    fn only_field(&self) -> Option<&str> {
        let mut fields = self.members("properties").map(|(name, _)| name);
        let only = fields.next().filter(|name| self.requires(name))?;
        let is_closed = self.get("additionalProperties") == Some(&Value::Bool(false));
        (is_closed && fields.next().is_none()).then_some(only)
    }

    pub(super) fn is_variant(&self) -> bool {
        self.get("const").is_some_and(|value| !value.is_null())
            || self.tags().next().is_some()
            || self.only_field().is_some()
    }

    /// Whether it is worth looking into both; what is left out here is never readable.
    pub(super) fn may_be_read_as(&self, reader: &Self) -> bool {
        if reader.is_any() {
            return true;
        }
        if let Some(value) = reader.get("const") {
            return self.get("const") == Some(value);
        }
        let (written, readable) = (self.kind(), reader.kind());
        let same = written == readable || (written == "integer" && readable == "number");
        let tags_agree = || {
            self.tags().all(|(name, value)| {
                let theirs = reader.member("properties", name).and_then(|schema| schema.get("const"));
                theirs.is_none_or(|theirs| theirs == value)
            })
        };
        let fields_agree = || match (self.only_field(), reader.only_field()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        // A reader of any type would be `is_any`; one that says something without a type is not understood.
        readable == "any" || (same && (written != "object" || (tags_agree() && fields_agree())))
    }

    /// In the words of JSON, for messages.
    pub(super) fn describe(&self) -> String {
        if let Some(value) = self.get("const") {
            return value.to_string();
        }
        let kind = self.kind();
        let tag = self.tags().next().map(|(name, value)| format!("the variant with {name} = {value}"));
        let variant = || self.only_field().map(|name| format!("the variant {name:?}"));
        match self.get("format").and_then(Value::as_str) {
            // Of `Option`, the format stands beside both types.
            Some(format) if kind != "null" => format!("{kind} ({format})"),
            _ => tag
                .or_else(variant)
                .unwrap_or_else(|| if self.is_any() { "anything" } else { kind }.to_owned()),
        }
    }
}

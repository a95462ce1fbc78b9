//! A schema as the lock keeps it: what the JSON looks like, and nothing of how the Rust is written.
//!
//! schemars names definitions after Rust types, copies doc comments, and computes defaults (`Utc::now()` among them).
//! None of that is part of the contract, and all of it would make the lock change where the contract does not.

use super::inline::inlined;
use serde_json::{Map, Value};

/// Says something to people, and nothing about the JSON.
const ANNOTATIONS: [&str; 11] = [
    "$comment",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
    "x-enum-descriptions",
];

/// The canonical form: no annotations, definitions written out where they are used unless they are recursive, lists
/// without meaning sorted.
pub(super) fn canonical(schema: &Value) -> Value {
    let mut canonical = inlined(&stripped(schema));
    // Numbered last: the order of first use is only settled when everything is sorted.
    canonical = united(&canonical);
    numbered(canonical)
}

/// Calls `change` on every schema directly below this one, and copies the rest.
pub(super) fn with_children(
    schema: &Map<String, Value>,
    mut change: impl FnMut(&Value) -> Value,
) -> Map<String, Value> {
    let mut copy = Map::new();
    for (keyword, value) in schema {
        let changed = match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs", Value::Object(members)) => {
                Value::Object(members.iter().map(|(name, schema)| (name.clone(), change(schema))).collect())
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(members)) => {
                Value::Array(members.iter().map(&mut change).collect())
            }
            (
                "items"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "not"
                | "contains"
                | "propertyNames"
                | "x-outbox-sealed",
                schema,
            ) => change(schema),
            _ => value.clone(),
        };
        copy.insert(keyword.clone(), changed);
    }
    copy
}

fn stripped(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    let mut copy = with_children(object, stripped);
    copy.retain(|keyword, _| !ANNOTATIONS.contains(&keyword.as_str()));
    Value::Object(copy)
}

/// Sorts what has no order, and gives the lists of an enum's values one form: schemars writes a variant apart when it
/// has a doc comment.
fn united(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    let mut copy = with_children(object, united);
    if let Some(Value::Array(variants)) = copy.remove("oneOf") {
        match one_list(variants) {
            // The only alternative there is.
            Variants::Values(values) if copy.is_empty() => copy = values,
            Variants::Values(values) => {
                copy.insert("oneOf".to_owned(), Value::Array(vec![Value::Object(values)]));
            }
            Variants::Others(others) => {
                copy.insert("oneOf".to_owned(), Value::Array(others));
            }
        }
    }
    for list in ["required", "enum"] {
        if let Some(Value::Array(items)) = copy.get_mut(list) {
            items.sort_by_cached_key(Value::to_string);
            items.dedup();
        }
    }
    if copy.get("required").is_some_and(|required| *required == Value::Array(Vec::new())) {
        copy.remove("required");
    }
    if let Some([one]) = copy.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        let one = one.clone();
        copy.remove("enum");
        copy.insert("const".to_owned(), one);
    }
    sorted(copy)
}

enum Variants {
    Values(Map<String, Value>),
    Others(Vec<Value>),
}

/// All alternatives that are plain texts, as one.
fn one_list(variants: Vec<Value>) -> Variants {
    let mut values = Vec::new();
    let mut others = Vec::new();
    for variant in variants {
        match texts(&variant) {
            Some(texts) => values.extend(texts),
            None => others.push(variant),
        }
    }
    values.sort_by_cached_key(Value::to_string);
    let list = || {
        let mut list = Map::new();
        if let [one] = values.as_slice() {
            list.insert("const".to_owned(), one.clone());
        } else {
            list.insert("enum".to_owned(), Value::Array(values.clone()));
        }
        list.insert("type".to_owned(), "string".into());
        list
    };
    if others.is_empty() {
        return Variants::Values(list());
    }
    if !values.is_empty() {
        others.push(Value::Object(list()));
    }
    others.sort_by_cached_key(nameless);
    Variants::Others(others)
}

/// The values of an alternative that is nothing but a list of texts.
fn texts(variant: &Value) -> Option<Vec<Value>> {
    let object = variant.as_object()?;
    let values = match (object.get("enum"), object.get("const")) {
        (Some(Value::Array(values)), None) => values.clone(),
        (None, Some(value)) => vec![value.clone()],
        _ => return None,
    };
    (object.len() == 2 && object.get("type").is_some_and(|of| of == "string")).then_some(values)
}

/// The text without the names of definitions, which are Rust's.
fn nameless(schema: &Value) -> String {
    fn blank(schema: &Value) -> Value {
        let Value::Object(object) = schema else {
            return schema.clone();
        };
        let mut copy = with_children(object, blank);
        if let Some(name) = copy.get_mut("$ref") {
            *name = "".into();
        }
        Value::Object(copy)
    }
    blank(schema).to_string()
}

/// Keys in order, whatever kind of map `serde_json` was built with.
fn sorted(object: Map<String, Value>) -> Value {
    let mut entries: Vec<_> = object.into_iter().collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let by_name = |value: Value, keyword: &str| match value {
        Value::Object(members) if matches!(keyword, "properties" | "patternProperties" | "$defs") => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(members.into_iter().collect())
        }
        other => other,
    };
    let entries = entries.into_iter().map(|(keyword, value)| {
        let value = by_name(value, &keyword);
        (keyword, value)
    });
    Value::Object(entries.collect())
}

/// Names the definitions that are left `t0`, `t1` and so on, by their first use.
fn numbered(mut schema: Value) -> Value {
    let Some(Value::Object(definitions)) = schema.as_object_mut().and_then(|root| root.remove("$defs"))
    else {
        return schema;
    };
    let mut names: Vec<String> = Vec::new();
    let mut root = renamed(&schema, &mut names);
    let mut kept = Map::new();
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        let definition = definitions.get(&name).map_or(Value::Bool(true), |found| renamed(found, &mut names));
        kept.insert(format!("t{next}"), definition);
        next += 1;
    }
    if let (Some(root), false) = (root.as_object_mut(), kept.is_empty()) {
        root.insert("$defs".to_owned(), Value::Object(kept));
        return sorted(std::mem::take(root));
    }
    root
}

fn renamed(schema: &Value, names: &mut Vec<String>) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    let mut copy = object.clone();
    if let Some(name) = super::inline::target(object) {
        let number = names.iter().position(|other| *other == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        copy.insert("$ref".to_owned(), format!("#/$defs/t{number}").into());
    }
    Value::Object(with_children(&copy, |child| renamed(child, names)))
}

//! Definitions, written out where they are used.

use super::canonical::with_children;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// More than any payload needs; a definition that is used twice in each of twenty others would be written out a
/// million times.
const MAX_NODES: usize = 100_000;

/// The name of the definition that a schema refers to.
pub(super) fn target(schema: &Map<String, Value>) -> Option<String> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
    // As a JSON pointer in a URL is written.
    Some(name.replace("~1", "/").replace("~0", "~"))
}

/// The schema with all definitions but the recursive ones written out; those are kept.
pub(super) fn inlined(schema: &Value) -> Value {
    let Value::Object(root) = schema else {
        return schema.clone();
    };
    let mut root = root.clone();
    let Some(Value::Object(definitions)) = root.remove("$defs") else {
        return schema.clone();
    };
    let recursive: BTreeSet<String> =
        definitions.keys().filter(|name| reaches_itself(name, &definitions)).cloned().collect();
    let mut inliner = Inliner { definitions: &definitions, kept: recursive, nodes: 0 };
    let mut written_out = inliner.inline(&Value::Object(root.clone()));
    if inliner.nodes > MAX_NODES {
        // Everything stays a reference; the form is still canonical, only less so.
        inliner =
            Inliner { definitions: &definitions, kept: definitions.keys().cloned().collect(), nodes: 0 };
        written_out = inliner.inline(&Value::Object(root));
    }
    let kept = inliner.kept.clone();
    let kept: Map<_, _> = kept
        .into_iter()
        .filter_map(|name| {
            let definition = inliner.inline(definitions.get(&name)?);
            Some((name, definition))
        })
        .collect();
    if let (Some(root), false) = (written_out.as_object_mut(), kept.is_empty()) {
        root.insert("$defs".to_owned(), Value::Object(kept));
    }
    written_out
}

struct Inliner<'a> {
    definitions: &'a Map<String, Value>,
    kept: BTreeSet<String>,
    nodes: usize,
}

impl Inliner<'_> {
    fn inline(&mut self, schema: &Value) -> Value {
        self.nodes += 1;
        let Value::Object(object) = schema else {
            return schema.clone();
        };
        if self.nodes > MAX_NODES {
            return schema.clone();
        }
        let named = target(object).filter(|name| !self.kept.contains(name));
        let Some(definition) = named.and_then(|name| self.definitions.get(&name)) else {
            return Value::Object(with_children(object, |child| self.inline(child)));
        };
        let mut beside = object.clone();
        beside.remove("$ref");
        let beside = with_children(&beside, |child| self.inline(child));
        let inlined = self.inline(definition);
        both(inlined, beside)
    }
}

/// What satisfies a definition and what stands beside the reference to it.
fn both(definition: Value, beside: Map<String, Value>) -> Value {
    match definition {
        definition if beside.is_empty() => definition,
        Value::Object(mut merged) if beside.keys().all(|keyword| !merged.contains_key(keyword)) => {
            merged.extend(beside);
            Value::Object(merged)
        }
        definition => {
            let mut all = Map::new();
            all.insert("allOf".to_owned(), Value::Array(vec![definition, Value::Object(beside)]));
            Value::Object(all)
        }
    }
}

fn reaches_itself(name: &str, definitions: &Map<String, Value>) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<String> = definitions.get(name).map(references).unwrap_or_default();
    while let Some(next) = waiting.pop() {
        if next == name {
            return true;
        }
        if let (Some(definition), true) = (definitions.get(&next), seen.insert(next)) {
            waiting.extend(references(definition));
        }
    }
    false
}

fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Value::Object(object) = schema {
        found.extend(target(object));
        with_children(object, |child| {
            found.extend(references(child));
            Value::Null
        });
    }
    found
}

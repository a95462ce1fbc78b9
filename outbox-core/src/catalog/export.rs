//! The catalog as files, for those who read the rows without Rust.

use super::errors::{CatalogError, CatalogErrors};
use crate::event::{EventDescriptor, catalog};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, fs, path::Path};

/// The list of all files, which the next export reads.
const INDEX: &str = "catalog.json";

/// Writes JSON Schema files (draft 2020-12) of every event that is linked into this binary into a directory, which is
/// made when it is missing.
///
/// For `orders.order-placed.v2` there are `orders.order-placed.v2.written.json`, what this build writes, and
/// `orders.order-placed.v2.readable.json`, what it can read; both with their titles and descriptions. `catalog.json`
/// lists them, with aliases, versions and the paths of sensitive values. Files that an earlier export listed and this
/// one does not are removed; nothing else in the directory is touched.
///
/// # Errors
///
/// When the directory or a file cannot be written.
pub fn export(directory: impl AsRef<Path>) -> Result<(), CatalogErrors> {
    let directory = directory.as_ref();
    fs::create_dir_all(directory).map_err(|error| CatalogError::io(directory, &error))?;
    let before = listed(&directory.join(INDEX));
    let mut files = BTreeSet::new();
    let mut entries = Vec::new();
    for event in catalog() {
        let schemas = event.schemas();
        let mut names = Vec::new();
        for (contract, schema) in [("written", &schemas.written), ("readable", &schemas.readable)] {
            let name = format!("{}.{contract}.json", event.logical_name);
            write(&directory.join(&name), &named(schema.as_value(), &name))?;
            names.push(name);
        }
        entries.push(entry(event, &names, schemas.written.as_value()));
        files.extend(names);
    }
    for stale in before.difference(&files) {
        let path = directory.join(stale);
        if path.exists() {
            fs::remove_file(&path).map_err(|error| CatalogError::io(&path, &error))?;
        }
    }
    Ok(write(&directory.join(INDEX), &json!({ "events": entries }))?)
}

fn entry(event: &EventDescriptor, files: &[String], written: &Value) -> Value {
    let mut sensitive = BTreeSet::new();
    find_sensitive(written, written, "", 0, &mut sensitive);
    let older: Vec<u16> = (1..event.event_version).filter(|version| event.reads(*version)).collect();
    json!({
        "name": event.event_type,
        "version": event.event_version,
        "aliases": event.aliases,
        "draft": event.is_draft,
        "reads": older,
        "sensitive": sensitive,
        "written": files[0],
        "readable": files[1],
    })
}

/// A schema that knows its own file.
fn named(schema: &Value, name: &str) -> Value {
    let mut named = schema.as_object().cloned().unwrap_or_else(|| {
        // `true` and `false` are schemas too.
        Map::from_iter([("allOf".to_owned(), json!([schema]))])
    });
    named.insert("$id".to_owned(), name.into());
    Value::Object(named)
}

fn write(path: &Path, value: &Value) -> Result<(), CatalogError> {
    let text = format!("{value:#}\n");
    fs::write(path, text).map_err(|error| CatalogError::io(path, &error))
}

/// The files of an earlier export. Only plain names: an index that somebody changed must not lead elsewhere.
fn listed(index: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(index).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let events = value.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
    let files =
        events.iter().flat_map(|event| ["written", "readable"].map(|which| event.get(which).cloned()));
    let is_ours = |name: &String| {
        let ends = name.ends_with(".written.json") || name.ends_with(".readable.json");
        ends && !name.contains(['/', '\\'])
    };
    files.flatten().filter_map(|name| name.as_str().map(str::to_owned)).filter(is_ours).collect()
}

/// The paths of values that are sealed or redacted.
fn find_sensitive(root: &Value, schema: &Value, path: &str, depth: usize, found: &mut BTreeSet<String>) {
    let Some(object) = schema.as_object().filter(|_| depth < 32) else { return };
    if object.contains_key("x-outbox-sealed") || object.contains_key("x-outbox-redacted") {
        found.insert(path.to_owned());
        return;
    }
    let mut look = |schema: &Value, path: &str| find_sensitive(root, schema, path, depth + 1, found);
    if let Some(name) = super::inline::target(object) {
        look(root.get("$defs").and_then(|all| all.get(&name)).unwrap_or(&Value::Null), path);
    }
    for (name, member) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        look(member, &if path.is_empty() { name.clone() } else { format!("{path}.{name}") });
    }
    for keyword in ["oneOf", "anyOf", "allOf", "prefixItems"] {
        for member in object.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            look(member, path);
        }
    }
    for (keyword, sign) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(member) = object.get(keyword) {
            look(member, &format!("{path}{sign}"));
        }
    }
}

use outbox_core::{
    OutboxEvent, catalog,
    sensitive::{Redacted, Sealed},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// Somebody who signed up.
#[derive(Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "catalog-tests.user-registered", version = 2, ordering = none, alias = "catalog-tests.registered", upcast_json(1 = keep))]
struct UserRegistered {
    #[outbox(sensitive)]
    email: Option<Sealed<String>>,
    contacts: Vec<Contact>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Contact {
    phone: Redacted<String>,
    city: String,
}

fn keep(payload: Value) -> Result<Value, String> {
    if payload.is_object() { Ok(payload) } else { Err("it is no object".to_owned()) }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_catalog_is_written_as_files_and_stale_ones_are_removed() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export");
    drop(fs::remove_dir_all(&directory));
    catalog::export(&directory).unwrap();
    let index = read(&directory.join("catalog.json"));
    let entries = index["events"].as_array().unwrap();
    assert_eq!(entries.len(), catalog().len());
    let ours = entries.iter().find(|entry| entry["name"] == UserRegistered::EVENT_TYPE).unwrap();
    assert_eq!(
        *ours,
        json!({
            "name": "catalog-tests.user-registered",
            "version": 2,
            "aliases": ["catalog-tests.registered"],
            "draft": false,
            "reads": [1],
            "sensitive": ["contacts[].phone", "email"],
            "written": "catalog-tests.user-registered.v2.written.json",
            "readable": "catalog-tests.user-registered.v2.readable.json",
        })
    );
    let written = read(&directory.join(ours["written"].as_str().unwrap()));
    assert_eq!(written["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(written["$id"], ours["written"]);
    assert_eq!(written["description"], "Somebody who signed up.");
    assert_eq!(written["required"], json!(["email", "contacts"]));
    // An earlier export listed an event that is gone; a file of somebody else's is not ours to remove.
    let stale = directory.join("catalog-tests.gone.v1.written.json");
    for path in [&stale, &directory.join("README.md")] {
        fs::write(path, "{}").unwrap();
    }
    let listed = json!({ "events": [
        { "written": "catalog-tests.gone.v1.written.json", "readable": "../export/README.md" },
        { "written": "README.md" },
    ] });
    fs::write(directory.join("catalog.json"), listed.to_string()).unwrap();
    catalog::export(&directory).unwrap();
    assert!(!stale.exists() && directory.join("README.md").exists());
    assert_eq!(read(&directory.join("catalog.json")), index);
}

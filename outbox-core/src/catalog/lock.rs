//! The file that remembers every state that a payload ever had.

use super::errors::CatalogError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fs, io, path::Path};

/// What the file says of itself; counted up when its form changes.
const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lock {
    format: u32,
    pub(super) events: Vec<LockedEvent>,
}

/// One version of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockedEvent {
    pub(super) name: String,
    pub(super) version: u16,
    /// Nothing of it was stored for good: it may change freely, and only its last state is kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) draft: bool,
    /// Set by hand: no row of it is left anywhere, so nothing has to read it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) retired: bool,
    /// Former names, under which rows are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) aliases: Vec<String>,
    /// Older versions that are read as this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) reads: Vec<u16>,
    /// Every state that the payload had, the current one last. All are kept: whether a reader can read the rows of
    /// the one before the last says nothing of the rows before that.
    pub(super) states: Vec<State>,
}

/// The two contracts of a payload, in canonical form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) written: Value,
    pub(super) readable: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl LockedEvent {
    pub(super) fn logical_name(&self) -> String {
        format!("{}.v{}", self.name, self.version)
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self { format: FORMAT, events: Vec::new() }
    }
}

impl Lock {
    /// `None` when there is no file.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, CatalogError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CatalogError::io(path, &error)),
        };
        let malformed = |reason: String| CatalogError::Malformed { path: path.display().to_string(), reason };
        // The form first: a newer file may hold what this version does not know.
        let value: Value = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        match value.get("format").and_then(Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return Err(malformed(format!("it has format {format}, and this version knows {FORMAT}")));
            }
            None => return Err(malformed("it has no `format`".to_owned())),
        }
        let mut lock: Self = serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
        lock.sort();
        let twins =
            |pair: &&[LockedEvent]| pair[0].name == pair[1].name && pair[0].version == pair[1].version;
        if let Some(pair) = lock.events.windows(2).find(twins) {
            return Err(malformed(format!("it has {} twice", pair[0].logical_name())));
        }
        if let Some(event) = lock.events.iter().find(|event| event.states.is_empty()) {
            return Err(malformed(format!("it has no state of {}", event.logical_name())));
        }
        Ok(Some(lock))
    }

    pub(super) fn sort(&mut self) {
        self.events.sort_by(|a, b| (&a.name, a.version).cmp(&(&b.name, b.version)));
    }

    /// Written beside and then renamed: a run that is cut off leaves the old file.
    pub(super) fn store(&mut self, path: &Path) -> Result<(), CatalogError> {
        self.sort();
        let mut text = serde_json::to_string_pretty(self).expect("a lock is plain JSON");
        text.push('\n');
        let beside = path.with_extension(format!("json.{}", std::process::id()));
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
        written.map_err(|error| {
            drop(fs::remove_file(&beside));
            CatalogError::io(path, &error)
        })
    }
}

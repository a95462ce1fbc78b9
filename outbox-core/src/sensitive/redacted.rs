//! A value that stays in memory.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::IgnoredAny};
use std::{borrow::Cow, fmt};

/// A value that is never stored: it is written as `null`, and nothing is read back.
///
/// Its use is a field that handlers no longer need, or must no longer have: rows that still hold it in plaintext can
/// be read, and what they hold is dropped.
///
/// ```
/// use outbox_core::sensitive::Redacted;
///
/// let email = Redacted::new("alice@example.com".to_owned());
/// assert_eq!(email.get().map(String::as_str), Some("alice@example.com"));
/// assert_eq!(format!("{email:?}"), "Redacted");
/// assert_eq!(serde_json::to_string(&email).unwrap(), "null");
/// let read: Redacted<String> = serde_json::from_str("\"alice@example.com\"").unwrap();
/// assert_eq!(read.get(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Redacted<T>(Option<T>);

impl<T> Redacted<T> {
    /// Keeps a value out of the outbox.
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value; `None` after it was stored.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// The value itself; `None` after it was stored.
    pub fn into_inner(self) -> Option<T> {
        self.0
    }
}

/// Nothing.
impl<T> Default for Redacted<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redacted")
    }
}

impl<T> Serialize for Redacted<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de, T> Deserialize<'de> for Redacted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(None))
    }
}

impl<T> JsonSchema for Redacted<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Redacted".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_serialize() {
            json_schema!({ "type": "null", "x-outbox-redacted": true })
        } else {
            json_schema!({ "x-outbox-redacted": true })
        }
    }
}

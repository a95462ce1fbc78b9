//! The two contracts of a payload.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};

/// The JSON Schemas (draft 2020-12) of a payload.
///
/// serde gives a type two shapes: what it writes and what it can read (`default`, `alias` and `skip` make them
/// differ). Both matter to whoever reads a stored row, so both are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadSchemas {
    /// What this build writes.
    pub written: Schema,
    /// What this build can read.
    pub readable: Schema,
}

impl PayloadSchemas {
    /// The schemas of `T`.
    pub fn of<T: JsonSchema>() -> Self {
        let draft = SchemaSettings::draft2020_12;
        Self {
            written: draft().for_serialize().into_generator().into_root_schema_for::<T>(),
            readable: draft().for_deserialize().into_generator().into_root_schema_for::<T>(),
        }
    }
}

//! What the attributes of fields and variants may say.

use syn::{Attribute, Data, Fields, Path};

use crate::internals::ctxt::Ctxt;
use crate::internals::symbol::{
    DESERIALIZE_WITH, OUTBOX, SCHEMA_WITH, SCHEMARS, SERDE, SERIALIZE_WITH, Symbol, WITH,
};
use crate::internals::vocabulary::skip_word;

pub(super) fn check(cx: &Ctxt, data: &Data) {
    let each = |fields: &Fields| fields.iter().for_each(|field| one(cx, "field", &field.attrs));
    match data {
        Data::Struct(data) => each(&data.fields),
        Data::Enum(data) => {
            for variant in &data.variants {
                one(cx, "variant", &variant.attrs);
                each(&variant.fields);
            }
        }
        Data::Union(_) => {}
    }
}

fn one(cx: &Ctxt, what: &str, attributes: &[Attribute]) {
    for attribute in attributes.iter().filter(|attribute| *attribute.path() == OUTBOX) {
        cx.error(
            attribute.path(),
            format_args!("#[outbox(...)] stands on the event; on a {what} nothing is supported yet"),
        );
    }
    // schemars looks at serde's attributes, but not into serde's functions: with a function of one's own the schema
    // would describe the field's type, while serde writes what the function writes.
    if word(attributes, SCHEMARS, &[WITH, SCHEMA_WITH]).is_none()
        && let Some(path) = word(attributes, SERDE, &[SERIALIZE_WITH, DESERIALIZE_WITH, WITH])
    {
        cx.error(
            path,
            format_args!(
                "the schema would not match what serde uses here; add #[schemars(with = \"...\")] with a type that \
                 is written the same way, or #[schemars(schema_with = \"...\")]"
            ),
        );
    }
}

/// The first of these words in another derive's attribute. What that derive cannot read is for it to report.
fn word(attributes: &[Attribute], attribute: Symbol, words: &[Symbol]) -> Option<Path> {
    let mut found = None;
    for attribute in attributes.iter().filter(|candidate| *candidate.path() == attribute) {
        let _ = attribute.parse_nested_meta(|meta| {
            if words.iter().any(|word| meta.path == *word) {
                found.get_or_insert(meta.path);
            }
            skip_word(meta.input);
            Ok(())
        });
    }
    found
}

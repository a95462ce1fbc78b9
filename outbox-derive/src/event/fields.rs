//! What the attributes of fields and variants may say.

use syn::{Attribute, Data, Fields, Path, Type};

use crate::internals::attr::Attr;
use crate::internals::ctxt::Ctxt;
use crate::internals::symbol::{
    DESERIALIZE_WITH, OUTBOX, SCHEMA_WITH, SCHEMARS, SENSITIVE, SERDE, SERIALIZE_WITH, Symbol, WITH,
};
use crate::internals::vocabulary::{Vocabulary, skip_word};

const WORDS: Vocabulary = Vocabulary { attribute: OUTBOX, words: &[SENSITIVE] };

/// Checks every field and variant, and hands out the types of the sensitive fields.
pub(super) fn check<'a>(cx: &Ctxt, data: &'a Data) -> Vec<&'a Type> {
    let mut sensitive = Vec::new();
    let mut each = |fields: &'a Fields| {
        for field in fields {
            sensitive.extend(is_sensitive(cx, &field.attrs).then_some(&field.ty));
            functions(cx, &field.attrs);
        }
    };
    match data {
        Data::Struct(data) => each(&data.fields),
        Data::Enum(data) => {
            for variant in &data.variants {
                nothing(cx, &variant.attrs);
                functions(cx, &variant.attrs);
                each(&variant.fields);
            }
        }
        Data::Union(_) => {}
    }
    sensitive
}

fn is_sensitive(cx: &Ctxt, attributes: &[Attribute]) -> bool {
    let mut sensitive = Attr::none();
    let outbox = WORDS.read(cx, attributes, |word| sensitive.set(cx, word, word.flag()));
    if let Some(outbox) = outbox.filter(|_| !sensitive.is_given() && attributes.iter().any(is_empty)) {
        cx.error(outbox, "on a field #[outbox(...)] takes `sensitive`");
    }
    sensitive.is_given()
}

/// `#[outbox]` and `#[outbox()]`.
fn is_empty(attribute: &Attribute) -> bool {
    *attribute.path() == OUTBOX && attribute.meta.require_list().map_or(true, |list| list.tokens.is_empty())
}

fn nothing(cx: &Ctxt, attributes: &[Attribute]) {
    for attribute in attributes.iter().filter(|attribute| *attribute.path() == OUTBOX) {
        cx.error(attribute.path(), "#[outbox(...)] stands on the event or on a field, not on a variant");
    }
}

fn functions(cx: &Ctxt, attributes: &[Attribute]) {
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

//! The words of `#[aggregate(...)]` on the struct and on its fields.

use proc_macro2::{Ident, TokenStream};
use syn::{Attribute, DeriveInput, Error, Field, LitStr, Path, Result, parse_quote};

use crate::internals::attr::{Attr, Word};
use crate::internals::ctxt::Ctxt;
use crate::internals::names;
use crate::internals::symbol::{AGGREGATE, CRATE, EVENTS, NAME, ROOT, TABLES, VERSION};
use crate::internals::vocabulary::Vocabulary;

const WORDS: Vocabulary = Vocabulary { attribute: AGGREGATE, words: &[NAME, TABLES, VERSION, CRATE] };

const FIELD_WORDS: Vocabulary = Vocabulary { attribute: AGGREGATE, words: &[ROOT, EVENTS] };

/// What the user wrote on the struct, word by word.
pub(super) struct Attrs<'a> {
    /// The word `aggregate` of the first attribute.
    pub(super) aggregate: Option<&'a Path>,
    pub(super) name: Attr<LitStr>,
    pub(super) tables: Attr<Path>,
    /// The root's column that counts its saves.
    pub(super) version: Attr<Ident>,
    krate: Attr<Path>,
}

impl<'a> Attrs<'a> {
    pub(super) fn parse(cx: &Ctxt, input: &'a DeriveInput) -> Self {
        let mut attrs = Self {
            aggregate: None,
            name: Attr::none(),
            tables: Attr::none(),
            version: Attr::none(),
            krate: Attr::none(),
        };
        attrs.aggregate = WORDS.read(cx, &input.attrs, |word| match word.symbol {
            NAME => attrs.name.set(cx, word, name(word)),
            TABLES => attrs.tables.set(cx, word, word.value("path::to::TABLE_NAMES")),
            VERSION => attrs.version.set(cx, word, word.value("column")),
            _ => attrs.krate.set(cx, word, word.krate()),
        });
        attrs
    }

    pub(super) fn krate(&self) -> Path {
        self.krate.get().cloned().unwrap_or_else(|| parse_quote!(::outbox_seaorm))
    }
}

fn name(word: &Word<'_>) -> Result<LitStr> {
    let grammar = names::AGGREGATE_NAME;
    let name = word.string(&format!("{:?}", grammar.example))?;
    grammar.check(&name.value()).map_err(|problem| Error::new(name.span(), problem))?;
    Ok(name)
}

/// What a field is to the aggregate.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Root,
    Events,
}

/// The part that a field plays, and the word that says so. Two parts on one field are reported.
pub(super) fn role(cx: &Ctxt, field: &Field) -> Option<(Role, TokenStream)> {
    let mut role = None;
    FIELD_WORDS.read(cx, &field.attrs, |word| {
        let this = if word.symbol == ROOT { Role::Root } else { Role::Events };
        match &role {
            None => role = Some((this, word.at.clone())),
            Some((first, _)) if *first == this => {
                cx.push(word.refuse(format_args!("`{}` is given twice", word.symbol)));
            }
            Some(_) => cx.push(word.refuse("a field is the root or the event buffer, not both")),
        }
    });
    if let Some(silent) = field.attrs.iter().find(|attribute| says_nothing(attribute)) {
        cx.error(silent, "say what the field is: #[aggregate(root)] or #[aggregate(events)]");
    }
    role
}

fn says_nothing(attribute: &Attribute) -> bool {
    *attribute.path() == AGGREGATE
        && attribute.meta.require_list().map_or(true, |list| list.tokens.is_empty())
}

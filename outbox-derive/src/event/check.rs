//! The rules that need more than one word.

use proc_macro2::{Ident, Span};
use syn::{Data, DeriveInput, Fields, LitStr, Path};

use super::attr::{self, Attrs};
use super::fields;
use crate::internals::ctxt::Ctxt;
use crate::internals::names::kebab;

/// An event without mistakes.
pub(super) struct Event<'a> {
    pub(super) ident: &'a Ident,
    pub(super) name: LitStr,
    pub(super) version: u16,
    pub(super) ordering: Ordering,
    pub(super) krate: Path,
}

pub(super) enum Ordering {
    Aggregate,
    None,
    /// The field as the attribute names it; it exists.
    Key(Ident),
}

pub(super) fn check<'a>(cx: &Ctxt, input: &'a DeriveInput, attrs: Attrs<'_>) -> Option<Event<'a>> {
    shape(cx, input);
    fields::check(cx, &input.data);
    given(cx, input, &attrs);
    let krate = attrs.krate();
    let ordering = match attrs.ordering.into_value() {
        None | Some(attr::Ordering::Aggregate) => Some(Ordering::Aggregate),
        Some(attr::Ordering::None) => Some(Ordering::None),
        Some(attr::Ordering::Key(field)) => key(cx, &input.data, field),
    };
    Some(Event {
        ident: &input.ident,
        name: attrs.name.into_value()?,
        version: attrs.version.into_value()?,
        ordering: ordering?,
        krate,
    })
}

fn shape(cx: &Ctxt, input: &DeriveInput) {
    if let Data::Union(data) = &input.data {
        cx.error(data.union_token, "an outbox event is a struct or an enum: serde cannot write a union");
    }
    if !input.generics.params.is_empty() {
        cx.error(
            &input.generics.params,
            "an outbox event cannot be generic: one logical name stands for exactly one payload schema; derive on a \
             concrete newtype instead",
        );
    }
}

/// A word that is there with a wrong value has been reported already.
fn given(cx: &Ctxt, input: &DeriveInput, attrs: &Attrs<'_>) {
    let at = attrs.outbox.map_or_else(|| input.ident.span(), spanned);
    if !attrs.name.is_given() {
        let mut words = format!("name = \"<context>.{}\"", kebab(&input.ident.to_string()));
        if !attrs.version.is_given() {
            words.push_str(", version = 1");
        }
        if attrs.outbox.is_none() {
            words = format!("#[outbox({words})]");
        }
        cx.error_at(
            at,
            format_args!(
                "missing logical name: add `{words}`; the Rust path is never used, because stored rows outlive \
                 refactorings"
            ),
        );
    } else if !attrs.version.is_given() {
        cx.error_at(
            at,
            "missing version of the payload: add `version = 1`, and count up when the payload changes",
        );
    }
}

fn spanned(path: &Path) -> Span {
    syn::spanned::Spanned::span(path)
}

fn key(cx: &Ctxt, data: &Data, key: Ident) -> Option<Ordering> {
    let Data::Struct(data) = data else {
        cx.error(
            &key,
            "an enum has no field that every variant has; use `ordering = none` or `ordering = aggregate`",
        );
        return None;
    };
    let Fields::Named(fields) = &data.fields else {
        cx.error(&key, "`key` names a field, so the struct needs named fields");
        return None;
    };
    let names: Vec<&Ident> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
    if names.contains(&&key) {
        return Some(Ordering::Key(key));
    }
    let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let has = if list.is_empty() { "it has none".to_owned() } else { format!("it has {list}") };
    cx.error(&key, format_args!("the event has no field `{key}`; {has}"));
    None
}

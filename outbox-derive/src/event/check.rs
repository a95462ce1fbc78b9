//! The rules that need more than one word.

use proc_macro2::{Ident, Span};
use syn::{Data, DeriveInput, Fields, LitStr, Path, Type};

use super::attr::{self, Attrs};
use super::steps::{self, Steps};
use super::{fields, upcast::Upcast};
use crate::internals::ctxt::Ctxt;
use crate::internals::names::kebab;

/// An event without mistakes.
pub(super) struct Event<'a> {
    pub(super) ident: &'a Ident,
    pub(super) name: LitStr,
    pub(super) version: u16,
    pub(super) ordering: Ordering,
    /// Whether its dead letters let their key go on.
    pub(super) proceeds: bool,
    pub(super) upcast: Upcast,
    pub(super) aliases: Vec<LitStr>,
    pub(super) draft: bool,
    /// The types of the fields that are marked as sensitive.
    pub(super) sensitive: Vec<&'a Type>,
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
    let sensitive = fields::check(cx, &input.data);
    given(cx, input, &attrs);
    aliases(cx, &attrs);
    let krate = attrs.krate();
    let draft = attrs.draft.is_given();
    let on_dead = attrs.on_dead.into_value();
    if let (Some(attr::Ordering::None), Some((_, policy))) = (attrs.ordering.get(), &on_dead) {
        cx.error(
            policy,
            "an event without order has no key that its dead letters could hold up; remove `on_dead`",
        );
    }
    let ordering = match attrs.ordering.into_value() {
        None | Some(attr::Ordering::Aggregate) => Some(Ordering::Aggregate),
        Some(attr::Ordering::None) => Some(Ordering::None),
        Some(attr::Ordering::Key(field)) => key(cx, &input.data, field),
    };
    let version = attrs.version.into_value();
    let upcast = match (attrs.upcast_from.into_value(), attrs.upcast_json.into_value()) {
        (Some(previous), Some(steps)) => return refuse_both(cx, &previous, &steps),
        (Some(previous), None) => Upcast::From(Box::new(previous)),
        (None, Some(steps)) => {
            if let Some(version) = version {
                steps::check(cx, &steps, version);
            }
            Upcast::Json(steps)
        }
        (None, None) => Upcast::None,
    };
    Some(Event {
        ident: &input.ident,
        name: attrs.name.into_value()?,
        version: version?,
        ordering: ordering?,
        proceeds: on_dead.is_some_and(|(proceeds, _)| proceeds),
        upcast,
        aliases: attrs.aliases,
        draft,
        sensitive,
        krate,
    })
}

fn refuse_both<T>(cx: &Ctxt, previous: &Type, steps: &Steps) -> Option<T> {
    let at = steps.first().map_or_else(Span::call_site, |step| step.at);
    let previous = quote::quote!(#previous).to_string().replace(' ', "");
    cx.error_at(
        at,
        format_args!(
            "the versions before this one come through `upcast_from = {previous}`; put `upcast_json` on the oldest \
             type of the chain"
        ),
    );
    None
}

/// A former name is another name, and one is enough.
fn aliases(cx: &Ctxt, attrs: &Attrs<'_>) {
    for (i, alias) in attrs.aliases.iter().enumerate() {
        let name = alias.value();
        if attrs.name.get().is_some_and(|own| own.value() == name) {
            cx.error(alias, format_args!("{name:?} is the event's own name; `alias` is for a former one"));
        } else if attrs.aliases[..i].iter().any(|other| other.value() == name) {
            cx.error(alias, format_args!("alias {name:?} is given twice"));
        }
    }
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

//! The rules that need more than one word.

use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Field, Fields, FieldsNamed, LitStr, Path, Type, Visibility};

use super::attr::{Attrs, Role, role};
use super::types;
use crate::internals::ctxt::Ctxt;
use crate::internals::names;

/// An aggregate whose code can be written.
pub(super) struct Aggregate<'a> {
    pub(super) vis: &'a Visibility,
    pub(super) ident: &'a Ident,
    pub(super) name: LitStr,
    pub(super) tables: Option<Path>,
    pub(super) version: Option<Ident>,
    pub(super) krate: Path,
    pub(super) parts: Parts<'a>,
}

/// The fields, by what they are to the aggregate.
pub(super) struct Parts<'a> {
    pub(super) root: &'a Ident,
    pub(super) root_ty: &'a Type,
    pub(super) events: &'a Ident,
    pub(super) events_ty: &'a Type,
    /// The `M` of `EventBuffer<M>`: the record as a save gives it back.
    pub(super) model: &'a Type,
    /// All others.
    pub(super) rest: Vec<&'a Field>,
}

/// `Some` wherever the fields allow to write the code, also when something else is wrong.
pub(super) fn check<'a>(cx: &Ctxt, input: &'a DeriveInput, attrs: Attrs<'_>) -> Option<Aggregate<'a>> {
    let krate = attrs.krate();
    let fields = shape(cx, input);
    if !attrs.name.is_given() {
        let at = attrs.aggregate.map_or_else(|| input.ident.span(), Spanned::span);
        let name = names::kebab(&input.ident.to_string());
        cx.error_at(
            at,
            format_args!(
                "missing name: add #[aggregate(name = \"{name}\")]; it is stored with every event, so it must survive \
                 renames of the struct"
            ),
        );
    }
    let parts = fields.and_then(|fields| parts(cx, input, fields));
    let name = attrs.name.into_value().unwrap_or_else(|| LitStr::new("invalid", Span::call_site()));
    Some(Aggregate {
        vis: &input.vis,
        ident: &input.ident,
        name,
        tables: attrs.tables.into_value(),
        version: attrs.version.into_value(),
        krate,
        parts: parts?,
    })
}

fn shape<'a>(cx: &Ctxt, input: &'a DeriveInput) -> Option<&'a FieldsNamed> {
    const SHAPE: &str = "an aggregate is a struct with named fields: a root and an event buffer";
    let generic = !input.generics.params.is_empty();
    if generic {
        cx.error(
            &input.generics.params,
            "an aggregate cannot be generic: its name stands for exactly one kind of root; write one struct for each",
        );
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => return (!generic).then_some(fields),
            Fields::Unnamed(fields) => cx.error(fields, SHAPE),
            Fields::Unit => cx.error(&input.ident, SHAPE),
        },
        Data::Enum(data) => cx.error(data.enum_token, SHAPE),
        Data::Union(data) => cx.error(data.union_token, SHAPE),
    }
    None
}

fn parts<'a>(cx: &Ctxt, input: &DeriveInput, fields: &'a FieldsNamed) -> Option<Parts<'a>> {
    let (mut root, mut events, mut rest) = (None, None, Vec::new());
    for field in &fields.named {
        let Some((role, word)) = role(cx, field) else {
            rest.push(field);
            continue;
        };
        let (slot, what) = match role {
            Role::Root => (&mut root, "root"),
            Role::Events => (&mut events, "event buffer"),
        };
        match slot {
            None => *slot = Some(field),
            Some(first) => {
                let first = name(first);
                cx.error(word, format_args!("an aggregate has one {what}, and that is `{first}` already"));
                // The code is written all the same, and fills it as it fills any other field.
                rest.push(field);
            }
        }
    }
    if root.is_none() {
        cx.error(
            &input.ident,
            "missing root: mark the field with the SeaORM `ActiveModel` with #[aggregate(root)]",
        );
    }
    if events.is_none() {
        cx.error(
            &input.ident,
            "missing events: mark the field with the `EventBuffer<your::Model>` with #[aggregate(events)]",
        );
    }
    let model = events.and_then(|events| types::model(cx, &events.ty));
    let (root, events, model) = (root?, events?, model?);
    types::belong_together(cx, &root.ty, model).then(|| Parts {
        root: name(root),
        root_ty: &root.ty,
        events: name(events),
        events_ty: &events.ty,
        model,
        rest,
    })
}

pub(super) fn name(field: &Field) -> &Ident {
    field.ident.as_ref().expect("the fields are named")
}

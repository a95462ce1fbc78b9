//! What the types of the root and of the event buffer say, as far as they can be read: a macro sees their words and
//! no types. Names that tell nothing are left to the compiler.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{GenericArgument, Path, PathArguments, Type};

use crate::internals::ctxt::Ctxt;

/// The `M` of `EventBuffer<M>`.
pub(super) fn model<'a>(cx: &Ctxt, events: &'a Type) -> Option<&'a Type> {
    if let Some(last) = path(events).and_then(|path| path.segments.last())
        && last.ident == "EventBuffer"
        && let PathArguments::AngleBracketed(arguments) = &last.arguments
        && let (Some(GenericArgument::Type(model)), 1) = (arguments.args.first(), arguments.args.len())
    {
        return Some(model);
    }
    cx.error(
        events,
        "the type of the event buffer is written `EventBuffer<your::Model>`, with the model that SeaORM gives back \
         for the root",
    );
    None
}

/// Reports a root and a model that cannot be of one entity. The compiler would do so in every method.
pub(super) fn belong_together(cx: &Ctxt, root: &Type, model: &Type) -> bool {
    let (Some(root_path), Some(model_path)) = (path(root), path(model)) else {
        return true;
    };
    let (root_name, model_name) = (last(root_path), last(model_path));
    let given_back = match root_name.as_str() {
        "ActiveModel" => "Model",
        "ActiveModelEx" => "ModelEx",
        "Model" | "ModelEx" => {
            let active = sibling(root_path, &format!("Active{root_name}"));
            cx.error(root, format_args!("the root is what SeaORM saves: write `{active}`"));
            return false;
        }
        _ => return true,
    };
    let tells = matches!(model_name.as_str(), "Model" | "ModelEx" | "ActiveModel" | "ActiveModelEx");
    let modules = module(root_path).zip(module(model_path));
    if !tells || (model_name == given_back && modules.is_none_or(|(root, model)| root == model)) {
        return true;
    }
    let (root, given_back) = (text(root), sibling(root_path, given_back));
    cx.error(
        model,
        format_args!("SeaORM gives `{root}` back as `{given_back}`: write `EventBuffer<{given_back}>`"),
    );
    false
}

/// The last name of a path.
fn last(path: &Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

fn path(ty: &Type) -> Option<&Path> {
    match ty {
        Type::Path(ty) if ty.qself.is_none() => Some(&ty.path),
        _ => None,
    }
}

/// The name of the module that a path names last.
fn module(path: &Path) -> Option<&Ident> {
    path.segments.iter().nth_back(1).map(|segment| &segment.ident)
}

/// The same path with another last name, as text.
fn sibling(path: &Path, name: &str) -> String {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.ident = Ident::new(name, last.ident.span());
    }
    text(&path)
}

fn text(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

//! What a function must look like to be a handler.

use proc_macro2::Ident;
use syn::{FnArg, GenericParam, LitStr, Path, ReturnType, Safety, Signature, Token, Type};

use super::attr::Attrs;
use crate::internals::ctxt::Ctxt;

/// A handler without mistakes.
pub(super) struct Handler<'a> {
    pub(super) id: LitStr,
    pub(super) krate: Path,
    pub(super) function: &'a Ident,
    pub(super) event: &'a Type,
    pub(super) output: &'a Type,
    /// What follows the event.
    pub(super) arguments: Vec<Argument<'a>>,
}

/// An argument as the wrapper holds it, and how it hands it on.
pub(super) struct Argument<'a> {
    pub(super) owned: &'a Type,
    pub(super) passed: Passed,
}

#[derive(Clone, Copy)]
pub(super) enum Passed {
    ByValue,
    ByReference(Option<Token![mut]>),
}

impl<'a> Argument<'a> {
    fn of(ty: &'a Type) -> Self {
        match ty {
            Type::Reference(reference) => {
                Self { owned: &reference.elem, passed: Passed::ByReference(reference.mutability) }
            }
            owned => Self { owned, passed: Passed::ByValue },
        }
    }
}

pub(super) fn check<'a>(cx: &Ctxt, signature: &'a Signature, attrs: Attrs) -> Option<Handler<'a>> {
    let krate = attrs.krate();
    if !attrs.id.is_given() {
        cx.error(
            &signature.ident,
            "missing handler id: add #[handler(id = \"<context>.<what-it-does>\")]; progress is recorded under the \
             id, so it must survive renames of the function",
        );
    }
    qualifiers(cx, signature);
    generics(cx, signature);
    let output = output(cx, signature);
    let types = inputs(cx, signature);
    let event = event(cx, signature, types.first().copied());
    Some(Handler {
        id: attrs.id.into_value()?,
        krate,
        function: &signature.ident,
        event: event?,
        output: output?,
        arguments: types.into_iter().skip(1).map(Argument::of).collect(),
    })
}

fn qualifiers(cx: &Ctxt, signature: &Signature) {
    if signature.asyncness.is_none() {
        cx.error(signature.fn_token, "a handler is an `async fn`");
    }
    if let Safety::Unsafe(token) = &signature.safety {
        cx.error(token, "a handler cannot be `unsafe`: the relay that calls it can promise nothing");
    }
    if let Some(variadic) = &signature.variadic {
        cx.error(variadic.dots, "a handler cannot be variadic");
    }
}

fn generics(cx: &Ctxt, signature: &Signature) {
    let (lifetimes, others): (Vec<_>, Vec<_>) =
        signature.generics.params.iter().partition(|param| matches!(param, GenericParam::Lifetime(_)));
    for param in others {
        cx.error(
            param,
            format_args!(
                "a registered handler cannot be generic; register each case by hand: \
                 `Router::builder().on(id, {}::<...>)`",
                signature.ident
            ),
        );
    }
    for param in lifetimes {
        cx.error(param, "a handler needs no lifetimes: write `&T`, the argument is lent for the whole call");
    }
}

fn output<'a>(cx: &Ctxt, signature: &'a Signature) -> Option<&'a Type> {
    const ADVICE: &str = "a handler returns `Result<(), E>`, where `E` is `HandlerError` or any error";
    match &signature.output {
        ReturnType::Default => cx.error(&signature.ident, ADVICE),
        ReturnType::Type(_, ty) if matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty()) => {
            cx.error(ty, ADVICE);
        }
        ReturnType::Type(_, ty) => return Some(ty),
    }
    None
}

/// The types of the arguments, in order.
fn inputs<'a>(cx: &Ctxt, signature: &'a Signature) -> Vec<&'a Type> {
    let mut types = Vec::new();
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                cx.error(receiver, "a handler is a free function; for a struct implement `EventHandler`");
            }
            FnArg::Typed(argument) => {
                if matches!(Argument::of(&argument.ty).owned, Type::ImplTrait(_)) {
                    cx.error(
                        &argument.ty,
                        "a registered handler cannot be generic; name the type of the argument",
                    );
                }
                types.push(&*argument.ty);
            }
        }
    }
    types
}

fn event<'a>(cx: &Ctxt, signature: &Signature, first: Option<&'a Type>) -> Option<&'a Type> {
    match first {
        None => cx.error(&signature.ident, "a handler takes the event as its first argument, by value"),
        Some(Type::Reference(reference)) => {
            cx.error(reference, "a handler takes the event by value: remove the `&`");
        }
        Some(event) => return Some(event),
    }
    None
}

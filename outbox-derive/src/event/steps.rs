//! `upcast_json(1 = from_v1, 2 = from_v2)`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Error, LitInt, Path, Result, Token, parenthesized, token};

use super::attr::number;
use crate::internals::attr::Word;
use crate::internals::ctxt::Ctxt;

const SHAPE: &str = "`upcast_json` takes a function for each old version: upcast_json(1 = from_v1)";

/// The functions in the order of their versions.
pub(super) type Steps = Vec<Step>;

/// A function that brings a payload of one version a step up.
pub(super) struct Step {
    pub(super) version: u16,
    pub(super) at: Span,
    pub(super) function: Path,
}

pub(super) fn parse(cx: &Ctxt, word: &Word<'_>) -> Result<Steps> {
    let input = word.rest();
    if !input.peek(token::Paren) {
        return Err(word.refuse(SHAPE));
    }
    let content;
    parenthesized!(content in input);
    // Taken out whole, so that what follows a mistake is not reported as another one.
    let content: TokenStream = content.parse()?;
    if content.is_empty() {
        return Err(word.refuse(SHAPE));
    }
    let mut steps: Steps = Vec::new();
    for step in Punctuated::<Step, Token![,]>::parse_terminated.parse2(content)? {
        if steps.iter().any(|other| other.version == step.version) {
            cx.error_at(step.at, format_args!("version {} has two functions; keep one", step.version));
        }
        steps.push(step);
    }
    steps.sort_by_key(|step| step.version);
    Ok(steps)
}

impl Parse for Step {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let shape = |error: Error| Error::new(error.span(), SHAPE);
        let version: LitInt = input.parse().map_err(shape)?;
        let Some(number) = number(&version) else {
            return Err(Error::new(version.span(), "a version is an integer in 1..=65535"));
        };
        input.parse::<Token![=]>().map_err(shape)?;
        let function = input.parse().map_err(shape)?;
        Ok(Self { version: number, at: version.span(), function })
    }
}

/// The rules that need the event's own version: a step leads upwards.
pub(super) fn check(cx: &Ctxt, steps: &[Step], version: u16) {
    for step in steps.iter().filter(|step| step.version >= version) {
        cx.error_at(
            step.at,
            format_args!(
                "version {} is not older than the event's own version {version}; `upcast_json` names the versions \
                 that came before it",
                step.version
            ),
        );
    }
}

/// Each version with its function.
pub(super) fn expand(steps: &[Step]) -> TokenStream {
    let steps = steps.iter().map(|step| {
        let (version, function) = (step.version, &step.function);
        quote!((#version, |payload| __o::JsonUpcast::upcast(#function, payload)))
    });
    quote!(&[#(#steps),*])
}

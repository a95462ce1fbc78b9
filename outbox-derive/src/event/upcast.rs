//! How an event reads the versions before it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned as _;

use super::check::Event;
use super::steps::{self, Steps};
use crate::internals::respan::located;

pub(super) enum Upcast {
    /// It reads its own version only.
    None,
    /// From the type of an earlier version, which may read others in turn.
    From(Box<Type>),
    /// From JSON, where the types of the earlier versions are gone.
    Json(Steps),
}

/// The parts that an upcast adds to the impl.
pub(super) struct Code {
    /// Which versions are read, unless it is the event's own only.
    pub(super) reader: Option<TokenStream>,
    /// What reads the other versions.
    pub(super) read: TokenStream,
    /// What must hold between the two types.
    pub(super) check: Option<TokenStream>,
}

pub(super) fn expand(event: &Event<'_>) -> Code {
    let logical_name = format!("{}.v{}", event.name.value(), event.version);
    match &event.upcast {
        Upcast::None => Code {
            reader: None,
            read: quote!(__o::Err(__o::DecodeError::unsupported_version(#logical_name, version))),
            check: None,
        },
        Upcast::From(previous) => from(event, previous, &logical_name),
        Upcast::Json(steps) => json(steps),
    }
}

fn from(event: &Event<'_>, previous: &Type, logical_name: &str) -> Code {
    let Event { ident, version, .. } = event;
    // At the type in the attribute, which is what is wrong; and in one place, so that it is wrong once.
    let span = located(previous.span());
    let chain = quote_spanned!(span=> __o::Chain::of::<#previous>());
    let other_name = format!(
        "`upcast_from` of {logical_name} names a version of another event: both have the same name, or this one has \
         the other's as `alias`"
    );
    let not_older = format!(
        "`upcast_from` of {logical_name} names a version that is not older: versions count up, so that every chain \
         has an end"
    );
    let assert_same = quote_spanned!(span=> ::core::assert!(CHAIN.is_same_event, #other_name));
    let assert_older = quote_spanned!(span=> ::core::assert!(CHAIN.is_older, #not_older));
    Code {
        reader: Some(quote! {
            fn reader(version: u16) -> __o::Option<__o::Reader> {
                if version == #version { __o::Reader::itself::<Self>() } else { (CHAIN.reader)(version) }
            }
        }),
        read: quote!((CHAIN.decode)(version, payload)),
        check: Some(quote! {
            const CHAIN: __o::Chain<#ident> = #chain;
            const _: () = {
                #assert_same;
                #assert_older;
            };
        }),
    }
}

fn json(steps: &Steps) -> Code {
    let functions = steps::expand(steps);
    let versions = steps.iter().map(|step| step.version);
    Code {
        reader: Some(quote! {
            fn reader(version: u16) -> __o::Option<__o::Reader> {
                match version {
                    Self::EVENT_VERSION => __o::Reader::itself::<Self>(),
                    #(#versions)|* => __o::Reader::functions::<Self>(),
                    _ => __o::None,
                }
            }
        }),
        read: quote!(__o::upcast_json(version, payload, #functions)),
        check: None,
    }
}

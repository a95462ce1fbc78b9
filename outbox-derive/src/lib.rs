//! The macros of `outbox-core` and `outbox-seaorm`.
//!
//! Use them through those crates: what a macro writes names their hidden modules and fits only the release it is
//! pinned to. The user's documentation stands on the re-exports, where its links resolve and its examples run.
//!
//! # Layout
//!
//! One folder a macro, and in each the same pipeline: `attr` reads the words, `check` applies the rules that need
//! more than one word, `expand` writes the code and cannot fail. `fallback` is what stands in for it when something
//! was wrong, so that the only errors a user sees are the ones that name a mistake.

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

mod aggregate;
mod event;
mod handler;
mod internals;
#[cfg(test)]
mod tests;

/// Gives an event its logical name; see the re-export in `outbox-core`.
#[proc_macro_derive(OutboxEvent, attributes(outbox))]
pub fn derive_outbox_event(input: TokenStream) -> TokenStream {
    event::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Makes saving a struct's root and its raised events one act; see the re-export in `outbox-seaorm`.
#[proc_macro_derive(Aggregate, attributes(aggregate))]
pub fn derive_aggregate(input: TokenStream) -> TokenStream {
    aggregate::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Registers an async function as a handler; see the re-export in `outbox-core`.
#[proc_macro_attribute]
pub fn handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    handler::attribute(arguments.into(), &item.into()).into()
}

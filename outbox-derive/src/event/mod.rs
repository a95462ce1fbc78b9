//! `#[derive(OutboxEvent)]`.

mod attr;
mod check;
mod expand;
mod fallback;
mod fields;
mod steps;
mod upcast;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::internals::ctxt::Ctxt;

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let cx = Ctxt::new();
    let attrs = attr::Attrs::parse(&cx, input);
    let krate = attrs.krate();
    let event = check::check(&cx, input, attrs);
    match cx.finish(event) {
        Ok(event) => expand::expand(&event),
        Err((errors, _)) => fallback::expand(&errors, input, &krate),
    }
}

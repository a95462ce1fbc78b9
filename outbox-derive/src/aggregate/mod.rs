//! `#[derive(Aggregate)]`.

mod attr;
mod check;
mod expand;
mod fallback;
mod save;
mod types;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::internals::ctxt::Ctxt;

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let cx = Ctxt::new();
    let attrs = attr::Attrs::parse(&cx, input);
    let aggregate = check::check(&cx, input, attrs);
    match cx.finish(aggregate) {
        Ok(aggregate) => expand::expand(&aggregate),
        Err((errors, aggregate)) => fallback::expand(&errors, aggregate.as_ref()),
    }
}

//! `#[handler]`.

mod attr;
mod check;
mod expand;
mod fallback;

use proc_macro2::TokenStream;

use crate::internals::ctxt::Ctxt;

pub(crate) fn attribute(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let cx = Ctxt::new();
    let attrs = attr::Attrs::parse(&cx, arguments);
    let header = attr::header(&cx, item);
    let handler = header.as_ref().and_then(|header| check::check(&cx, header, attrs));
    match cx.finish(handler) {
        Ok(handler) => expand::expand(item, &handler),
        Err((errors, _)) => fallback::expand(item, &errors),
    }
}

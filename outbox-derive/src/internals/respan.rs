//! Where generated code says that it stands.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;

/// A span at the user's word that still counts as generated.
///
/// The user's span itself would make the lints of the user's crate look at code that the user did not write.
pub(crate) fn located(at: Span) -> Span {
    Span::call_site().located_at(at)
}

/// The same name, as generated code at the same place.
pub(crate) fn generated(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(located(ident.span()));
    ident
}

/// The line on which `ident` stands.
///
/// `line!` gives the line of the outermost macro call that it is part of; with the user's own span, that is none.
pub(crate) fn line_of(ident: &Ident) -> TokenStream {
    quote_spanned!(ident.span()=> ::core::line!())
}

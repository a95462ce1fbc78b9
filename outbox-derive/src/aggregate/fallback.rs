//! What is emitted beside the errors.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Error;

use super::check::Aggregate;
use super::expand;

/// The errors; and the usual code if the fields allow it, so that `order.raise(event)` and `order.save(&db)` are no
/// errors too.
pub(super) fn expand(errors: &Error, aggregate: Option<&Aggregate<'_>>) -> TokenStream {
    let errors = errors.to_compile_error();
    let code = aggregate.map(expand::expand);
    quote! {
        #errors
        #code
    }
}

//! What is emitted beside the errors.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Error;

/// The function as it was, so that calls of it are no errors too. Nothing is registered.
pub(super) fn expand(item: &TokenStream, errors: &Error) -> TokenStream {
    let errors = errors.to_compile_error();
    quote! {
        #item
        #errors
    }
}

//! What is emitted beside the errors.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Path};

/// The errors, and an impl that keeps `raise(event)` and handlers of the event from being errors too.
///
/// It is never run, so it registers nothing and claims no name.
pub(super) fn expand(errors: &Error, input: &DeriveInput, krate: &Path) -> TokenStream {
    let errors = errors.to_compile_error();
    // serde cannot write a union: the impl itself would be an error.
    if matches!(input.data, Data::Union(_)) {
        return errors;
    }
    let ident = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let predicates = where_clause.map(|clause| &clause.predicates).into_iter();
    // Whether a generic type is a payload depends on its arguments, which are not known here.
    let payload = (!input.generics.params.is_empty()).then(|| quote!(#ident #ty_generics: __o::Payload,));
    quote! {
        #errors

        #[allow(deprecated)]
        const _: () = {
            use #krate::__private as __o;

            #[automatically_derived]
            impl #impl_generics __o::OutboxEvent for #ident #ty_generics
            where
                #payload
                #(#predicates)*
            {
                const EVENT_TYPE: &'static str = "invalid.invalid";
                const EVENT_VERSION: u16 = 1;
                const LOGICAL_NAME: &'static str = "invalid.invalid.v1";
                const ORDERING: __o::Ordering = __o::Ordering::None;

                fn decode(version: u16, _: &str) -> __o::Result<Self, __o::DecodeError> {
                    __o::Err(__o::DecodeError::unsupported_version("invalid.invalid.v1", version))
                }
            }
        };
    }
}

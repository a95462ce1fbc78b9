//! The code of an event.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;

use super::check::{Event, Ordering};
use crate::internals::respan::{generated, line_of, located};

pub(super) fn expand(event: &Event<'_>) -> TokenStream {
    let Event { ident, name, krate, .. } = event;
    let version = Literal::u16_unsuffixed(event.version);
    let logical_name = format!("{}.v{}", name.value(), event.version);
    let (ordering, ordering_key) = ordering(&event.ordering);
    let guard = guard(event);
    let line = line_of(ident);
    quote! {
        #[allow(deprecated)]
        const _: () = {
            use #krate::__private as __o;

            #[automatically_derived]
            impl __o::OutboxEvent for #ident {
                const EVENT_TYPE: &'static str = #name;
                const EVENT_VERSION: u16 = #version;
                const LOGICAL_NAME: &'static str = #logical_name;
                const ORDERING: __o::Ordering = __o::Ordering::#ordering;

                #ordering_key

                // Without it, each crate that declares events would also compile serde's reading of all of them.
                #[inline]
                fn decode(version: u16, payload: &str) -> __o::Result<Self, __o::DecodeError> {
                    if version == #version {
                        read(payload)
                    } else {
                        __o::Err(__o::DecodeError::unsupported_version(#logical_name, version))
                    }
                }
            }

            // Of an event that is no payload, the impl says so. Asking for an event here keeps the compiler from
            // saying it again at `decode_json`, and the literal above keeps it from saying it at the constant.
            #[inline]
            fn read<E: __o::OutboxEvent>(payload: &str) -> __o::Result<E, __o::DecodeError> {
                __o::decode_json(payload)
            }

            __o::inventory::submit! {
                __o::EventDescriptor::new::<#ident>(::core::module_path!(), ::core::file!(), #line)
            }

            #guard
        };
    }
}

fn ordering(ordering: &Ordering) -> (TokenStream, Option<TokenStream>) {
    match ordering {
        Ordering::Aggregate => (quote!(Aggregate), None),
        Ordering::None => (quote!(None), None),
        Ordering::Key(field) => (quote!(Key), Some(ordering_key(field))),
    }
}

fn ordering_key(field: &Ident) -> TokenStream {
    let name = field.unraw().to_string();
    let field = generated(field);
    // At the field's name in the attribute: that is where a type without `Display` is wrong.
    let key = quote_spanned! {field.span()=> __o::field_key(#name, &self.#field) };
    quote! {
        fn ordering_key(&self) -> __o::Option<__o::String> {
            __o::Some(#key)
        }
    }
}

/// Makes a second event of this name and version in the same crate a compile error at its name.
///
/// An exported macro has one place in a crate, wherever it is declared. `.` and `-` become `__` and `_`, which keeps
/// names apart that are apart, because neither is doubled within a segment.
fn guard(event: &Event<'_>) -> TokenStream {
    let span = located(event.name.span());
    let name = event.name.value().replace('.', "__").replace('-', "_");
    let guard = Ident::new(&format!("__outbox_event__{name}__v{}", event.version), span);
    quote_spanned! {span=>
        #[allow(non_local_definitions, unused_macros)]
        #[doc(hidden)]
        #[macro_export]
        macro_rules! #guard {
            () => {};
        }
    }
}

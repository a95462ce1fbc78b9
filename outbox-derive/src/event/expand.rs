//! The code of an event.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{quote, quote_spanned};
use syn::LitStr;
use syn::ext::IdentExt as _;

use super::check::{Event, Ordering};
use super::upcast;
use crate::internals::respan::{generated, line_of, located};

pub(super) fn expand(event: &Event<'_>) -> TokenStream {
    let Event { ident, name, krate, .. } = event;
    let version = Literal::u16_unsuffixed(event.version);
    let logical_name = format!("{}.v{}", name.value(), event.version);
    let (ordering, ordering_key) = ordering(&event.ordering);
    let upcast::Code { reader, read, check } = upcast::expand(event);
    let contract = contract(event);
    let names = std::iter::once(name).chain(&event.aliases);
    let guards = names.map(|name| guard(name, event.version));
    let sensitive = event.sensitive.iter().map(|ty| {
        // At the field's type, which is what is wrong.
        let span = located(syn::spanned::Spanned::span(ty));
        quote_spanned!(span=> const _: () = __o::sensitive::<#ty>();)
    });
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

                #contract

                #ordering_key

                #reader

                // Without it, each crate that declares events would also compile serde's reading of all of them.
                #[inline]
                fn decode(version: u16, payload: &str) -> __o::Result<Self, __o::DecodeError> {
                    if version == #version {
                        read(payload)
                    } else {
                        #read
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

            #check
            #(#sensitive)*
            #(#guards)*
        };
    }
}

/// What most events leave as it is.
fn contract(event: &Event<'_>) -> TokenStream {
    let aliases = &event.aliases;
    let aliases =
        (!aliases.is_empty()).then(|| quote!(const ALIASES: &'static [&'static str] = &[#(#aliases),*];));
    let draft = event.draft.then(|| {
        quote!(
            const IS_DRAFT: bool = true;
        )
    });
    let proceeds = event.proceeds.then(|| {
        quote!(
            const PROCEEDS: bool = true;
        )
    });
    quote!(#aliases #draft #proceeds)
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

/// Makes a second event of this name and version in the same crate a compile error at its name. A former name counts
/// as a name.
///
/// An exported macro has one place in a crate, wherever it is declared. `.` and `-` become `__` and `_`, which keeps
/// names apart that are apart, because neither is doubled within a segment.
fn guard(name: &LitStr, version: u16) -> TokenStream {
    let span = located(name.span());
    let name = name.value().replace('.', "__").replace('-', "_");
    let guard = Ident::new(&format!("__outbox_event__{name}__v{version}"), span);
    quote_spanned! {span=>
        #[allow(non_local_definitions, unused_macros)]
        #[doc(hidden)]
        #[macro_export]
        macro_rules! #guard {
            () => {};
        }
    }
}

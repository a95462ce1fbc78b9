//! The code of an aggregate.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;

use super::check::{Aggregate, name};
use super::save;
use crate::internals::respan::located;

pub(super) fn expand(aggregate: &Aggregate<'_>) -> TokenStream {
    let Aggregate { ident, krate, .. } = aggregate;
    let traits = traits(aggregate);
    let new = new(aggregate);
    let events = events(aggregate);
    let save = save::methods(aggregate);
    quote! {
        #[allow(deprecated)]
        const _: () = {
            use #krate::__private as __o;

            #traits

            // Nobody calls all of them.
            #[allow(dead_code)]
            impl #ident {
                #new
                #events
                #save
            }
        };
    }
}

fn traits(aggregate: &Aggregate<'_>) -> TokenStream {
    let Aggregate { ident, name, tables, version, parts, .. } = aggregate;
    let (root, root_ty, model) = (parts.root, parts.root_ty, parts.model);
    let tables = tables.as_ref().map_or_else(|| quote!(__o::TableNames::new()), ToTokens::to_token_stream);
    let version = version.as_ref().map(|column| {
        let (text, span) = (column.to_string(), located(column.span()));
        let number = quote_spanned!(span=> __o::version_number(saved.#column));
        quote! {
            const VERSION_COLUMN: __o::Option<&'static str> = __o::Some(#text);

            fn version(saved: &Self::Model) -> __o::Option<i64> {
                #number
            }
        }
    });
    let steps = save::steps(aggregate);
    let from = quote_spanned!(located(model.span())=> __o::IntoActiveModel::into_active_model(model));
    quote! {
        // A type with a destructor cannot be taken apart: moving the root out, and with it the save that would store
        // the raised events, is a compile error even in the module that declares the struct.
        #[automatically_derived]
        impl __o::Drop for #ident {
            fn drop(&mut self) {}
        }

        #[automatically_derived]
        impl __o::From<#model> for #ident {
            fn from(model: #model) -> Self {
                Self::new(#from)
            }
        }

        #[automatically_derived]
        impl __o::Deref for #ident {
            type Target = #root_ty;

            fn deref(&self) -> &Self::Target {
                &self.#root
            }
        }

        #[automatically_derived]
        impl __o::DerefMut for #ident {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.#root
            }
        }

        #[automatically_derived]
        impl __o::Aggregate for #ident {
            type Model = #model;
            type Root = #root_ty;

            const AGGREGATE_TYPE: &'static str = #name;
            const TABLES: __o::TableNames = #tables;
            #version
            #steps
        }
    }
}

fn new(aggregate: &Aggregate<'_>) -> TokenStream {
    let Aggregate { vis, parts, .. } = aggregate;
    let (root, root_ty, events) = (parts.root, parts.root_ty, parts.events);
    let empty = quote_spanned!(located(parts.events_ty.span())=> __o::Default::default());
    let rest = parts.rest.iter().map(|field| {
        let name = name(field);
        let default = quote_spanned!(located(field.ty.span())=> __o::Default::default());
        quote!(#name: #default)
    });
    quote! {
        /// An aggregate over this root that has raised nothing yet; all other fields have their default.
        #[must_use]
        #vis fn new(#root: #root_ty) -> Self {
            Self { #root, #events: #empty #(, #rest)* }
        }
    }
}

fn events(aggregate: &Aggregate<'_>) -> TokenStream {
    let Aggregate { vis, parts, .. } = aggregate;
    let (events, model) = (parts.events, parts.model);
    quote! {
        /// Raises an event: its identity, time and payload are fixed now, and the next save stores it.
        ///
        /// An event that cannot be stored makes that save fail; `try_raise` says so at once.
        #vis fn raise<E: __o::OutboxEvent>(&mut self, event: E) {
            self.#events.raise(event);
        }

        /// Raises an event and gives its identity.
        ///
        /// # Errors
        ///
        /// When the event cannot be stored; then nothing was raised.
        #vis fn try_raise<E: __o::OutboxEvent>(&mut self, event: E) -> __o::Result<__o::MessageId, __o::EventError> {
            self.#events.try_raise(event)
        }

        /// Raises an event that needs what the database generates: the closure is given the saved model, inside the
        /// transaction. Identity and time are fixed now, and the identity is returned. It runs again when a failed
        /// save is tried again.
        #vis fn raise_with<E: __o::OutboxEvent>(
            &mut self,
            event: impl __o::Fn(&#model) -> E + __o::Send + __o::Sync + 'static,
        ) -> __o::MessageId {
            self.#events.raise_with(event)
        }

        /// How many raised events are not stored yet.
        #[must_use]
        #vis fn pending_events(&self) -> usize {
            self.#events.len()
        }

        /// Forgets the raised events that are not stored yet.
        #vis fn discard_events(&mut self) {
            self.#events.discard();
        }

        /// Not to be called, and no call compiles: it stands before the root's own `clone`, which would be found
        /// through `Deref` and leave the raised events behind.
        #[doc(hidden)]
        #[allow(clippy::should_implement_trait, clippy::unused_self)]
        #vis fn clone(&self) -> Self
        where
            for<'__a> Self: __o::CloneableAggregate<'__a>,
        {
            ::core::unreachable!("no aggregate is cloneable")
        }
    }
}

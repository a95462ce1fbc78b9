//! How an aggregate is stored: the calls of SeaORM's own methods, which no trait has, and the four methods that the
//! user calls. What happens around them is the same for every aggregate and is not generated.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;

use super::check::Aggregate;
use crate::internals::respan::located;

/// The steps of the trait.
pub(super) fn steps(aggregate: &Aggregate<'_>) -> TokenStream {
    let (root, events, model) = (aggregate.parts.root, aggregate.parts.events, aggregate.parts.model);
    let span = located(aggregate.parts.root_ty.span());
    // Resolved on the root's own type. That runs the hooks of an `ActiveModel` and the cascade of an `ActiveModelEx`,
    // whose methods belong to no trait. A loaded root goes through the entity's own `save`, not its `update`: an
    // `ActiveModelEx` hands what it does on to its children, and an update of a child that is new fails. What is
    // deleted can no longer be read back, so the events see the root as it was.
    let saved = quote_spanned! {span=>
        let saved: #model = match operation {
            __o::Operation::Insert => root.insert(tx).await?,
            __o::Operation::Update => root.update(tx).await?,
            __o::Operation::Save => root.save(tx).await?.try_into_model()?,
            __o::Operation::Delete => {
                let gone = root.clone().try_into_model()?;
                __o::require_deleted::<Self>(&root.delete(tx).await?)?;
                gone
            }
        };
    };
    quote! {
        fn parts(aggregate: &Self) -> (&Self::Root, &__o::EventBuffer<Self::Model>) {
            (&aggregate.#root, &aggregate.#events)
        }

        fn parts_mut(aggregate: &mut Self) -> (&mut Self::Root, &mut __o::EventBuffer<Self::Model>) {
            (&mut aggregate.#root, &mut aggregate.#events)
        }

        async fn write_root<__T: __o::ConnectionTrait + __o::TransactionTrait>(
            root: Self::Root,
            tx: &__T,
            operation: __o::Operation,
        ) -> __o::Result<Self::Model, __o::SaveError> {
            #[allow(unused_imports)]
            use __o::prelude::*;
            #saved
            __o::Ok(saved)
        }
    }
}

/// The methods of the aggregate.
pub(super) fn methods(aggregate: &Aggregate<'_>) -> TokenStream {
    let insert = insert(aggregate);
    let update = update(aggregate);
    let save = save(aggregate);
    let delete = delete(aggregate);
    quote! {
        #insert
        #update
        #save
        #delete
    }
}

fn insert(aggregate: &Aggregate<'_>) -> TokenStream {
    let docs = quote! {
        /// Inserts the root and stores the raised events with it, in one transaction. Given a transaction, it joins
        /// it through a savepoint.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
    };
    method(aggregate, &docs, &quote!(insert), &quote!(Insert))
}

fn update(aggregate: &Aggregate<'_>) -> TokenStream {
    let docs = quote! {
        /// Updates the root and stores the raised events with it, in one transaction. Given a transaction, it joins
        /// it through a savepoint.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
    };
    method(aggregate, &docs, &quote!(update), &quote!(Update))
}

fn save(aggregate: &Aggregate<'_>) -> TokenStream {
    let docs = quote! {
        /// Inserts a new root, updates a loaded one, and stores the raised events with it, in one transaction. Given a
        /// transaction, it joins it through a savepoint.
        ///
        /// A root is loaded when its whole primary key came from the database; a key that the application generates
        /// makes it no less new.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
    };
    method(aggregate, &docs, &quote!(save), &quote!(Save))
}

fn delete(aggregate: &Aggregate<'_>) -> TokenStream {
    let docs = quote! {
        /// Deletes the root and stores the raised events, in one transaction. Given a transaction, it joins it through
        /// a savepoint. The root is kept as it was.
        ///
        /// # Errors
        ///
        /// When the root is not in the database, or anything could not be written. Then nothing was; the events are
        /// kept, and it can be tried again.
    };
    method(aggregate, &docs, &quote!(delete), &quote!(Delete))
}

fn method(
    aggregate: &Aggregate<'_>,
    docs: &TokenStream,
    name: &TokenStream,
    operation: &TokenStream,
) -> TokenStream {
    let vis = aggregate.vis;
    quote! {
        #docs
        #vis async fn #name<C: __o::TransactionTrait>(&mut self, db: &C) -> __o::Result<(), __o::SaveError> {
            __o::save(self, db, __o::Operation::#operation).await
        }
    }
}

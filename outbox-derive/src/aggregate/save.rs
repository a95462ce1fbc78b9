//! The four methods that store an aggregate and its events in one transaction.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;

use super::check::Aggregate;
use crate::internals::respan::located;

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
    let body = written(aggregate, &quote!(Insert), &quote!(insert(txn).await?));
    let docs = quote! {
        /// Inserts the root and stores the raised events with it, in one transaction. Given a transaction, it joins
        /// it through a savepoint.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
    };
    method(aggregate, &docs, &quote!(insert), &body)
}

fn update(aggregate: &Aggregate<'_>) -> TokenStream {
    let body = written(aggregate, &quote!(Update), &quote!(update(txn).await?));
    let docs = quote! {
        /// Updates the root and stores the raised events with it, in one transaction. Given a transaction, it joins
        /// it through a savepoint.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
    };
    method(aggregate, &docs, &quote!(update), &body)
}

/// A loaded root goes through the entity's own `save`, not its `update`: an `ActiveModelEx` hands what it does on to its
/// children, and an update of a child that is new fails.
fn save(aggregate: &Aggregate<'_>) -> TokenStream {
    let root = aggregate.parts.root;
    let update = written(aggregate, &quote!(Update), &quote!(save(txn).await?.try_into_model()?));
    let body = quote! {
        if !__o::is_loaded(&self.#root) {
            return Self::insert(self, db).await;
        }
        #update
    };
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
    method(aggregate, &docs, &quote!(save), &body)
}

fn delete(aggregate: &Aggregate<'_>) -> TokenStream {
    let (root, model) = (aggregate.parts.root, aggregate.parts.model);
    let span = located(aggregate.parts.root_ty.span());
    // What is deleted can no longer be read back, so the events see the root as it was.
    let gone = quote_spanned!(span=> let gone: #model = self.#root.clone().try_into_model()?;);
    let steps = quote_spanned! {span=>
        let deleted = root.delete(txn).await?;
        __o::require_deleted::<Self>(&deleted)?;
    };
    let transaction = transaction(aggregate, &quote!(Delete), &steps, &quote!(gone));
    let body = quote! {
        #[allow(unused_imports)]
        use __o::prelude::*;
        #gone
        #transaction.map(|_| ())
    };
    let docs = quote! {
        /// Deletes the root and stores the raised events, in one transaction. Given a transaction, it joins it through
        /// a savepoint. The root is kept as it was.
        ///
        /// # Errors
        ///
        /// When the root is not in the database, or anything could not be written. Then nothing was; the events are
        /// kept, and it can be tried again.
    };
    method(aggregate, &docs, &quote!(delete), &body)
}

/// The body of a method after which the root is what the database gave back.
fn written(aggregate: &Aggregate<'_>, operation: &TokenStream, call: &TokenStream) -> TokenStream {
    let (root, model) = (aggregate.parts.root, aggregate.parts.model);
    let span = located(aggregate.parts.root_ty.span());
    // The call is resolved on the root's own type. That runs the hooks of an `ActiveModel` and the cascade of an
    // `ActiveModelEx`, whose methods belong to no trait. On a copy: the root survives a failure.
    let steps = quote_spanned!(span=> let saved: #model = root.#call;);
    let transaction = transaction(aggregate, operation, &steps, &quote!(saved));
    let into = quote_spanned!(span=> self.#root = saved.into_active_model(););
    quote! {
        #[allow(unused_imports)]
        use __o::prelude::*;
        let saved = #transaction?;
        #into
        __o::Ok(())
    }
}

/// Opens the transaction, writes the root, then the events as its last statement, and commits.
fn transaction(
    aggregate: &Aggregate<'_>,
    operation: &TokenStream,
    steps: &TokenStream,
    outcome: &TokenStream,
) -> TokenStream {
    let (root, events, model) = (aggregate.parts.root, aggregate.parts.events, aggregate.parts.model);
    quote! {
        {
            let begun = __o::begin(db).await?;
            let outcome = async {
                let txn = begun.transaction();
                let mut root = self.#root.clone();
                __o::prepare::<Self, _, _>(txn, &mut root, &self.#events, __o::Operation::#operation).await?;
                #steps
                __o::write_events::<Self, _>(txn, &self.#events, &#outcome).await?;
                __o::Ok::<#model, __o::SaveError>(#outcome)
            }
            .await;
            __o::settle::<C, #model>(begun, &mut self.#events, outcome).await
        }
    }
}

fn method(
    aggregate: &Aggregate<'_>,
    docs: &TokenStream,
    name: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let vis = aggregate.vis;
    quote! {
        #docs
        #vis async fn #name<C: __o::TransactionTrait>(&mut self, db: &C) -> __o::Result<(), __o::SaveError> {
            #body
        }
    }
}

//! The code of a handler.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned as _;

use super::check::{Argument, Handler, Passed};
use crate::internals::respan::{generated, line_of, located};

/// The function as it was, and an implementation of `Handler` that calls it.
///
/// Registering a closure would do as well, through the implementation for functions. But that one has a single
/// answer to everything that does not fit: "this is no handler". Written out, each part is asked for on its own and
/// is wrong at its own word.
pub(super) fn expand(item: &TokenStream, handler: &Handler<'_>) -> TokenStream {
    let Handler { id, krate, function, event, arguments, .. } = handler;
    let call = call(handler);
    let requires = (!arguments.is_empty()).then(|| requires(arguments));
    let line = line_of(function);
    quote! {
        #item

        #[allow(deprecated)]
        const _: () = {
            use #krate::__private as __o;

            struct __Handler;

            impl __o::Handler<()> for __Handler {
                type Event = #event;

                #call
                #requires
            }

            __o::inventory::submit! {
                __o::HandlerDescriptor {
                    id: #id,
                    module: ::core::module_path!(),
                    file: ::core::file!(),
                    line: #line,
                    install: |builder| builder.install(#id, __o::Source::new(::core::file!(), #line), __Handler),
                }
            }
        };
    }
}

fn call(handler: &Handler<'_>) -> TokenStream {
    let Handler { function, event, output, arguments, .. } = handler;
    let names: Vec<Ident> = (1..=arguments.len()).map(|i| format_ident!("__a{i}")).collect();
    let built = arguments.iter().zip(&names).map(|(argument, name)| build(argument, name));
    let passed = arguments.iter().zip(&names).map(|(argument, name)| pass(argument, name));
    let function = generated(function);
    let outcome = quote_spanned!(located(output.span())=> __o::Outcome::outcome(__outcome));
    // At the function's name: that is where a future that is not `Send` is reported.
    let boxed = quote_spanned!(function.span()=> ::std::boxed::Box::pin(__future));
    quote! {
        fn call(
            &self,
            __event: #event,
            __call: &__o::Call,
        ) -> __o::Result<__o::HandlerFuture, __o::HandlerError> {
            #(#built)*
            let __future = async move {
                let __outcome = #function(__event #(, #passed)*).await;
                #outcome
            };
            __o::Ok(#boxed)
        }
    }
}

fn build(argument: &Argument<'_>, name: &Ident) -> TokenStream {
    let mutability = match argument.passed {
        Passed::ByValue => None,
        Passed::ByReference(mutability) => mutability,
    };
    let ty = argument.owned;
    let build = quote_spanned!(located(ty.span())=> <#ty as __o::FromMessage>::from_message(__call)?);
    quote!(let #mutability #name = #build;)
}

fn pass(argument: &Argument<'_>, name: &Ident) -> TokenStream {
    match argument.passed {
        Passed::ByValue => quote!(#name),
        Passed::ByReference(mutability) => quote!(&#mutability #name),
    }
}

fn requires(arguments: &[Argument<'_>]) -> TokenStream {
    let requirements = arguments.iter().map(|argument| {
        let ty: &Type = argument.owned;
        quote_spanned!(located(ty.span())=> <#ty as __o::FromMessage>::requires())
    });
    quote! {
        fn requires() -> ::std::vec::Vec<__o::Requirement> {
            let requirements = [#(#requirements),*];
            ::core::iter::Iterator::collect(::core::iter::Iterator::flatten(
                ::core::iter::IntoIterator::into_iter(requirements),
            ))
        }
    }
}

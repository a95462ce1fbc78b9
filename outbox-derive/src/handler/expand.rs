//! The code of a handler.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned as _;

use super::check::{Argument, Handler};
use crate::internals::respan::{generated, line_of, located};

pub(super) fn expand(item: &TokenStream, handler: &Handler<'_>) -> TokenStream {
    let Handler { id, krate, function, event, arguments } = handler;
    let arguments_are_checked = checks(arguments);
    let event = checked(event, "Event");
    let names: Vec<Ident> = (1..=arguments.len()).map(|i| format_ident!("__a{i}")).collect();
    let parameters = arguments.iter().zip(&names).map(|(argument, name)| parameter(argument, name));
    let passed = arguments.iter().zip(&names).map(|(argument, name)| pass(argument, name));
    let line = line_of(function);
    let function = generated(function);
    // At the function's name: that is where a future that is not `Send` is reported.
    let install = quote_spanned! {function.span()=>
        __builder.install(
            #id,
            __o::Source::new(::core::file!(), #line),
            |__event: #event #(, #parameters)*| async move { #function(__event #(, #passed)*).await },
        )
    };
    quote! {
        #item

        const _: () = {
            use #krate::__private as __o;

            #arguments_are_checked

            __o::inventory::submit! {
                __o::HandlerDescriptor {
                    id: #id,
                    module: ::core::module_path!(),
                    file: ::core::file!(),
                    line: #line,
                    install: |__builder| #install,
                }
            }
        };
    }
}

fn parameter(argument: &Argument<'_>, name: &Ident) -> TokenStream {
    let mutability = argument.lent.flatten();
    let ty = checked(argument.owned, "Argument");
    quote!(#mutability #name: #ty)
}

fn pass(argument: &Argument<'_>, name: &Ident) -> TokenStream {
    match &argument.lent {
        None => quote!(#name),
        Some(mutability) => quote!(&#mutability #name),
    }
}

/// Traits through which the wrapper names the types of its parameters.
///
/// `<T as Argument>::Checked` is `T`, and an error at `T` where `T` is no argument. The compiler then knows that the
/// wrapper itself is in error and does not go on to say that it is no handler, which would be true but no help.
fn checks(arguments: &[Argument<'_>]) -> TokenStream {
    let argument = (!arguments.is_empty()).then(|| {
        quote! {
            trait Argument {
                type Checked;
            }
            impl<T: __o::FromMessage> Argument for T {
                type Checked = T;
            }
        }
    });
    quote! {
        trait Event {
            type Checked;
        }
        impl<T: __o::OutboxEvent> Event for T {
            type Checked = T;
        }
        #argument
    }
}

fn checked(ty: &Type, as_what: &str) -> TokenStream {
    let span = located(ty.span());
    let as_what = Ident::new(as_what, span);
    quote_spanned!(span=> <#ty as #as_what>::Checked)
}

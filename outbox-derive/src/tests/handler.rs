//! `#[handler]`.

use proc_macro2::TokenStream;
use quote::quote;

use super::{check, contains, messages};

fn handler(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    crate::handler::attribute(arguments, item)
}

#[test]
fn arguments_are_owned_and_lent() {
    let item = quote! {
        /// Confirms.
        pub(crate) async fn confirm(
            OrderPlaced { order_id, .. }: OrderPlaced,
            State(mailer): State<Mailer>,
            cx: &MessageContext,
            mut tenant: &mut Tenant,
        ) -> Result<(), HandlerError> {
            mailer.send(order_id, cx, tenant).await
        }
    };
    check("handler", &handler(quote!(id = "mail.confirm-order"), &item));
}

#[test]
fn an_event_alone_is_enough() {
    let item = quote! {
        async fn confirm(event: crate::OrderPlaced) -> crate::Result {
            drop(event);
            Ok(())
        }
    };
    check("handler_event_only", &handler(quote!(id = "mail.confirm-order", crate = ::facade::core), &item));
}

#[test]
fn a_mistake_leaves_the_function_and_registers_nothing() {
    let item = quote! {
        fn confirm() {}
    };
    let expansion = handler(quote!(), &item);
    assert!(contains(&expansion, "fn confirm() {}") && !contains(&expansion, "inventory"));
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let item = quote! {
        unsafe fn confirm<'a, T: Clone>(&self, event: &OrderPlaced, other: impl Clone) {}
    };
    assert_eq!(
        messages(handler(quote!(id = "Confirm", ids = "a.b", retry(3)), &item)),
        [
            "handler id \"Confirm\" may not contain 'C'; use lowercase kebab-case segments, e.g. \"mail.confirm\"",
            "unknown handler attribute `ids`; did you mean `id`?",
            "unknown handler attribute `retry`; expected `id` or `crate`",
            "a handler is an `async fn`",
            "a handler cannot be `unsafe`: the relay that calls it can promise nothing",
            "a registered handler cannot be generic; register each case by hand: \
             `Router::builder().on(id, confirm::<...>)`",
            "a handler needs no lifetimes: write `&T`, the argument is lent for the whole call",
            "a handler returns `Result<(), E>`, where `E` is `HandlerError` or any error",
            "a handler is a free function; for a struct implement `EventHandler`",
            "a registered handler cannot be generic; name the type of the argument",
            "a handler takes the event by value: remove the `&`",
        ]
    );
}

#[test]
fn what_is_missing_is_asked_for() {
    let item = quote!(
        async fn confirm() -> () {}
    );
    assert_eq!(
        messages(handler(quote!(), &item)),
        [
            "missing handler id: add #[handler(id = \"<context>.<what-it-does>\")]; progress is recorded under the id, \
             so it must survive renames of the function",
            "a handler returns `Result<(), E>`, where `E` is `HandlerError` or any error",
            "a handler takes the event as its first argument, by value",
        ]
    );
}

#[test]
fn only_functions_are_handlers() {
    for item in [
        quote!(
            struct Confirm;
        ),
        quote!(impl Confirm {}),
        quote!(
            static CONFIRM: u8 = 1;
        ),
    ] {
        let expansion = handler(quote!(id = "mail.confirm"), &item);
        assert_eq!(messages(expansion), ["#[handler] stands on an `async fn`"], "{item}");
    }
}

#[test]
fn a_handler_takes_a_known_number_of_arguments() {
    let item = quote! {
        async unsafe extern "C" fn confirm(event: OrderPlaced, ...) -> Result<(), HandlerError> {}
    };
    let messages = messages(handler(quote!(id = "mail.confirm"), &item));
    assert!(messages.contains(&"a handler cannot be variadic".to_owned()), "{messages:?}");
}

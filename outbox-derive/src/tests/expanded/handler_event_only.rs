async fn confirm(event: crate::OrderPlaced) -> crate::Result {
    drop(event);
    Ok(())
}
#[allow(deprecated)]
const _: () = {
    use ::facade::core::__private as __o;
    struct __Handler;
    impl __o::Handler<()> for __Handler {
        type Event = crate::OrderPlaced;
        fn call(
            &self,
            __event: crate::OrderPlaced,
            __call: &__o::Call,
        ) -> __o::Result<__o::HandlerFuture, __o::HandlerError> {
            let __future = async move {
                let __outcome = confirm(__event).await;
                __o::Outcome::outcome(__outcome)
            };
            __o::Ok(::std::boxed::Box::pin(__future))
        }
    }
    __o::inventory::submit! {
        __o::HandlerDescriptor { id : "mail.confirm-order", module :
        ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), install :
        | builder | builder.install("mail.confirm-order",
        __o::Source::new(::core::file!(), ::core::line!()), __Handler), }
    }
};

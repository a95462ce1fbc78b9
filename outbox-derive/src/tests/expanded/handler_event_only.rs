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
                __Outcome::outcome(__outcome)
            };
            __o::Ok(::std::boxed::Box::pin(__future))
        }
    }
    #[diagnostic::on_unimplemented(
        message = "a handler returns `Result<(), E>`, and this one returns `{Self}`",
        label = "not the result of a handler",
        note = "`E` is `HandlerError` or any `std::error::Error`; what is neither can be converted: \
                    `.map_err(HandlerError::transient)`"
    )]
    trait __Outcome {
        fn outcome(self) -> __o::Result<(), __o::HandlerError>;
    }
    #[diagnostic::do_not_recommend]
    impl<E: ::core::convert::Into<__o::HandlerError>> __Outcome for __o::Result<(), E> {
        fn outcome(self) -> __o::Result<(), __o::HandlerError> {
            self.map_err(::core::convert::Into::into)
        }
    }
    __o::inventory::submit! {
        __o::HandlerDescriptor { id : "mail.confirm-order", module :
        ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), install :
        | builder | builder.install("mail.confirm-order",
        __o::Source::new(::core::file!(), ::core::line!()), __Handler), }
    }
};

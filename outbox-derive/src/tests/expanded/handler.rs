/// Confirms.
pub(crate) async fn confirm(
    OrderPlaced { order_id, .. }: OrderPlaced,
    State(mailer): State<Mailer>,
    cx: &MessageContext,
    mut tenant: &mut Tenant,
) -> Result<(), HandlerError> {
    mailer.send(order_id, cx, tenant).await
}
#[allow(deprecated)]
const _: () = {
    use ::outbox_core::__private as __o;
    struct __Handler;
    impl __o::Handler<()> for __Handler {
        type Event = OrderPlaced;
        fn call(
            &self,
            __event: OrderPlaced,
            __call: &__o::Call,
        ) -> __o::Result<__o::HandlerFuture, __o::HandlerError> {
            let __a1 = <State<Mailer> as __o::FromMessage>::from_message(__call)?;
            let __a2 = <MessageContext as __o::FromMessage>::from_message(__call)?;
            let mut __a3 = <Tenant as __o::FromMessage>::from_message(__call)?;
            let __future = async move {
                let __outcome = confirm(__event, __a1, &__a2, &mut __a3).await;
                __o::Outcome::outcome(__outcome)
            };
            __o::Ok(::std::boxed::Box::pin(__future))
        }
        fn requires() -> ::std::vec::Vec<__o::Requirement> {
            let requirements = [
                <State<Mailer> as __o::FromMessage>::requires(),
                <MessageContext as __o::FromMessage>::requires(),
                <Tenant as __o::FromMessage>::requires(),
            ];
            ::core::iter::Iterator::collect(
                ::core::iter::Iterator::flatten(
                    ::core::iter::IntoIterator::into_iter(requirements),
                ),
            )
        }
    }
    __o::inventory::submit! {
        __o::HandlerDescriptor { id : "mail.confirm-order", module :
        ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), install :
        | builder | builder.install("mail.confirm-order",
        __o::Source::new(::core::file!(), ::core::line!()), __Handler), }
    }
};

/// Confirms.
pub(crate) async fn confirm(
    OrderPlaced { order_id, .. }: OrderPlaced,
    State(mailer): State<Mailer>,
    cx: &MessageContext,
    mut tenant: &mut Tenant,
) -> Result<(), HandlerError> {
    mailer.send(order_id, cx, tenant).await
}
const _: () = {
    use ::outbox_core::__private as __o;
    trait Event {
        type Checked;
    }
    impl<T: __o::OutboxEvent> Event for T {
        type Checked = T;
    }
    trait Argument {
        type Checked;
    }
    impl<T: __o::FromMessage> Argument for T {
        type Checked = T;
    }
    __o::inventory::submit! {
        __o::HandlerDescriptor { id : "mail.confirm-order", module :
        ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), install :
        | __builder | __builder.install("mail.confirm-order",
        __o::Source::new(::core::file!(), ::core::line!()), | __event : < OrderPlaced as
        Event > ::Checked, __a1 : < State < Mailer > as Argument > ::Checked, __a2 : <
        MessageContext as Argument > ::Checked, mut __a3 : < Tenant as Argument >
        ::Checked | async move { confirm(__event, __a1, & __a2, & mut __a3). await },), }
    }
};

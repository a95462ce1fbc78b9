async fn confirm(event: crate::OrderPlaced) -> crate::Result {
    drop(event);
    Ok(())
}
const _: () = {
    use ::facade::core::__private as __o;
    trait Event {
        type Checked;
    }
    impl<T: __o::OutboxEvent> Event for T {
        type Checked = T;
    }
    __o::inventory::submit! {
        __o::HandlerDescriptor { id : "mail.confirm-order", module :
        ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), install :
        | __builder | __builder.install("mail.confirm-order",
        __o::Source::new(::core::file!(), ::core::line!()), | __event : < crate
        ::OrderPlaced as Event > ::Checked | async move { confirm(__event). await },), }
    }
};

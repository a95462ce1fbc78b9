#[allow(deprecated)]
const _: () = {
    use ::outbox_core::__private as __o;
    #[automatically_derived]
    impl __o::OutboxEvent for OrderPlaced {
        const EVENT_TYPE: &'static str = "orders.order-placed";
        const EVENT_VERSION: u16 = 2;
        const LOGICAL_NAME: &'static str = "orders.order-placed.v2";
        const ORDERING: __o::Ordering = __o::Ordering::Aggregate;
        #[inline]
        fn decode(version: u16, payload: &str) -> __o::Result<Self, __o::DecodeError> {
            if version == 2 {
                read(payload)
            } else {
                __o::Err(
                    __o::DecodeError::unsupported_version(
                        "orders.order-placed.v2",
                        version,
                    ),
                )
            }
        }
    }
    #[inline]
    fn read<E: __o::OutboxEvent>(payload: &str) -> __o::Result<E, __o::DecodeError> {
        __o::decode_json(payload)
    }
    __o::inventory::submit! {
        __o::EventDescriptor::new:: < OrderPlaced > (::core::module_path!(),
        ::core::file!(), ::core::line!())
    }
    #[allow(non_local_definitions, unused_macros)]
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __outbox_event__orders__order_placed__v2 {
        () => {};
    }
};

#[allow(deprecated)]
const _: () = {
    use ::outbox_core::__private as __o;
    #[automatically_derived]
    impl __o::OutboxEvent for OrderPlaced {
        const EVENT_TYPE: &'static str = "orders.order-placed";
        const EVENT_VERSION: u16 = 3;
        const LOGICAL_NAME: &'static str = "orders.order-placed.v3";
        const ORDERING: __o::Ordering = __o::Ordering::Aggregate;
        const IS_DRAFT: bool = true;
        fn reader(version: u16) -> __o::Option<__o::Reader> {
            match version {
                Self::EVENT_VERSION => __o::Reader::itself::<Self>(),
                1u16 | 2u16 => __o::Reader::functions::<Self>(),
                _ => __o::None,
            }
        }
        #[inline]
        fn decode(version: u16, payload: &str) -> __o::Result<Self, __o::DecodeError> {
            if version == 3 {
                read(payload)
            } else {
                __o::upcast_json(
                    version,
                    payload,
                    &[
                        (1u16, |payload| __o::JsonUpcast::upcast(old::from_v1, payload)),
                        (2u16, |payload| __o::JsonUpcast::upcast(from_v2, payload)),
                    ],
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
    macro_rules! __outbox_event__orders__order_placed__v3 {
        () => {};
    }
};

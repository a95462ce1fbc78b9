#[allow(deprecated)]
const _: () = {
    use ::outbox_core::__private as __o;
    #[automatically_derived]
    impl __o::OutboxEvent for OrderPlaced {
        const EVENT_TYPE: &'static str = "orders.order-placed";
        const EVENT_VERSION: u16 = 3;
        const LOGICAL_NAME: &'static str = "orders.order-placed.v3";
        const ORDERING: __o::Ordering = __o::Ordering::Aggregate;
        const ALIASES: &'static [&'static str] = &["orders.placed"];
        fn reader(version: u16) -> __o::Option<__o::Reader> {
            if version == 3u16 {
                __o::Reader::itself::<Self>()
            } else {
                (CHAIN.reader)(version)
            }
        }
        #[inline]
        fn decode(version: u16, payload: &str) -> __o::Result<Self, __o::DecodeError> {
            if version == 3 { read(payload) } else { (CHAIN.decode)(version, payload) }
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
    const CHAIN: __o::Chain<OrderPlaced> = __o::Chain::of::<old::OrderPlaced>();
    const _: () = {
        ::core::assert!(
            CHAIN.is_same_event,
            "`upcast_from` of orders.order-placed.v3 names a version of another event: both have the same name, or this one has the other's as `alias`"
        );
        ::core::assert!(
            CHAIN.is_older,
            "`upcast_from` of orders.order-placed.v3 names a version that is not older: versions count up, so that every chain has an end"
        );
    };
    const _: () = __o::sensitive::<Option<Sealed<String>>>();
    #[allow(non_local_definitions, unused_macros)]
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __outbox_event__orders__order_placed__v3 {
        () => {};
    }
    #[allow(non_local_definitions, unused_macros)]
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __outbox_event__orders__placed__v3 {
        () => {};
    }
};

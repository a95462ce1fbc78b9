::core::compile_error! {
    "event name \"OrderPlaced\" may not contain 'O'; use lowercase kebab-case segments, e.g. \"orders.order-placed\""
}
::core::compile_error! {
    "`version` must be an integer in 1..=65535"
}
#[allow(deprecated)]
const _: () = {
    use ::outbox_core::__private as __o;
    #[automatically_derived]
    impl __o::OutboxEvent for OrderPlaced {
        const EVENT_TYPE: &'static str = "invalid.invalid";
        const EVENT_VERSION: u16 = 1;
        const LOGICAL_NAME: &'static str = "invalid.invalid.v1";
        const ORDERING: __o::Ordering = __o::Ordering::None;
        fn decode(version: u16, _: &str) -> __o::Result<Self, __o::DecodeError> {
            __o::Err(
                __o::DecodeError::unsupported_version("invalid.invalid.v1", version),
            )
        }
    }
};

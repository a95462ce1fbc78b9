::core::compile_error! {
    "an outbox event cannot be generic: one logical name stands for exactly one payload schema; derive on a concrete newtype instead"
}
#[allow(deprecated)]
const _: () = {
    use ::outbox_core::__private as __o;
    #[automatically_derived]
    impl<'a, T: Clone, const N: usize> __o::OutboxEvent for OrderPlaced<'a, T, N>
    where
        OrderPlaced<'a, T, N>: __o::Payload,
        T: Copy,
    {
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

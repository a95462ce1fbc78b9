//! Old payload → newer type.

use super::{DecodeError, OutboxEvent, decode_json};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    any::{Any, TypeId},
    error::Error,
    fmt::Display,
};

/// What can be made from the version before it: every type with `From<P>` or `TryFrom<P>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from `{P}`, which its `upcast_from` names",
    label = "no conversion from this type",
    note = "implement `From<{P}> for {Self}`; or `TryFrom<{P}>`, whose error is displayable, when a payload may have to be refused"
)]
pub trait Upcast<P>: Sized {
    /// Makes it from the version before, or says why that cannot be.
    ///
    /// # Errors
    ///
    /// The refusal's text.
    fn upcast(previous: P) -> Result<Self, String>;
}

#[diagnostic::do_not_recommend]
impl<P, T: TryFrom<P>> Upcast<P> for T
where
    T::Error: Display + 'static,
{
    fn upcast(previous: P) -> Result<Self, String> {
        T::try_from(previous).map_err(|error| refusal(&error))
    }
}

/// A function that brings the JSON of an old payload up.
#[diagnostic::on_unimplemented(
    message = "this function cannot bring a payload up",
    label = "not `fn(serde_json::Value) -> Result<serde_json::Value, E>`",
    note = "`upcast_json` takes functions `fn(serde_json::Value) -> Result<serde_json::Value, E>` with a displayable `E`"
)]
pub trait JsonUpcast {
    /// Calls it.
    ///
    /// # Errors
    ///
    /// The refusal's text.
    fn upcast(self, payload: Value) -> Result<Value, String>;
}

#[diagnostic::do_not_recommend]
impl<F, E> JsonUpcast for F
where
    F: FnOnce(Value) -> Result<Value, E>,
    E: Display + 'static,
{
    fn upcast(self, payload: Value) -> Result<Value, String> {
        self(payload).map_err(|error| refusal(&error))
    }
}

/// What reads the payloads of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The type of that version.
    Type(TypeId),
    /// The `upcast_json` functions of this type.
    Functions(TypeId),
}

impl Reader {
    /// The type itself.
    #[allow(clippy::unnecessary_wraps, reason = "shorter in every expansion")]
    pub fn itself<E: 'static>() -> Option<Self> {
        Some(Self::Type(TypeId::of::<E>()))
    }

    /// Its functions.
    #[allow(clippy::unnecessary_wraps, reason = "shorter in every expansion")]
    pub fn functions<E: 'static>() -> Option<Self> {
        Some(Self::Functions(TypeId::of::<E>()))
    }
}

/// The refusal of a conversion, in its own words, unless they are serde's: those quote the payload.
fn refusal<E: Display + 'static>(error: &E) -> String {
    let any: &dyn Any = error;
    if let Some(json) = any.downcast_ref::<serde_json::Error>() {
        return super::decode::place(json);
    }
    let boxed = any.downcast_ref::<Box<dyn Error + Send + Sync>>().map(|error| &**error as &dyn Error);
    let boxed = boxed.or_else(|| any.downcast_ref::<Box<dyn Error>>().map(|error| &**error));
    match boxed.and_then(|error| error.downcast_ref::<serde_json::Error>()) {
        Some(json) => super::decode::place(json),
        None => error.to_string(),
    }
}

/// Reads a payload as `P`, and makes an `E` of it.
fn upcast<P: OutboxEvent, E: OutboxEvent + Upcast<P>>(version: u16, payload: &str) -> Result<E, DecodeError> {
    if !E::reads(version) {
        return Err(DecodeError::unsupported_version(E::LOGICAL_NAME, version));
    }
    let previous = P::decode(version, payload)?;
    E::upcast(previous).map_err(|reason| DecodeError::refused(E::LOGICAL_NAME, version, &reason))
}

/// Brings the JSON of a payload one step up, or says why not.
type Step = fn(Value) -> Result<Value, String>;

/// Brings the JSON of a payload up, one function after the other, and reads the result.
///
/// # Errors
///
/// When no function takes the version, the payload is no JSON, a function refuses it, or the result does not fit.
pub fn upcast_json<E: OutboxEvent + DeserializeOwned>(
    version: u16,
    payload: &str,
    steps: &[(u16, Step)],
) -> Result<E, DecodeError> {
    let event = E::LOGICAL_NAME;
    let Some(start) = steps.iter().position(|(from, _)| *from == version) else {
        return Err(DecodeError::unsupported_version(event, version));
    };
    let mut value = decode_json::<Value>(payload)?;
    for (from, step) in &steps[start..] {
        value = step(value).map_err(|reason| DecodeError::refused(event, *from, &reason))?;
    }
    // There is no place in a value, and serde's words would quote it.
    serde_json::from_value(value).map_err(|_| {
        DecodeError::refused(
            event,
            version,
            "what its `upcast_json` made of it does not fit the event's type",
        )
    })
}

/// What an event has of the version before it. An expansion asks for it once, so that what is wrong with that type is
/// said once.
#[derive(Debug)]
pub struct Chain<E> {
    /// Whether that is an older version of the same event: under the same name, or under a former one.
    pub is_same_event: bool,
    /// Whether its version is lower.
    pub is_older: bool,
    /// What reads a version.
    pub reader: fn(u16) -> Option<Reader>,
    /// Reads a payload of that version, or of one before it.
    pub decode: fn(u16, &str) -> Result<E, DecodeError>,
}

impl<E: OutboxEvent> Chain<E> {
    /// With `P` before `E`.
    pub const fn of<P: OutboxEvent>() -> Self
    where
        E: Upcast<P>,
    {
        let mut is_same_event = same(P::EVENT_TYPE, E::EVENT_TYPE);
        let mut i = 0;
        while i < E::ALIASES.len() {
            is_same_event |= same(P::EVENT_TYPE, E::ALIASES[i]);
            i += 1;
        }
        let is_older = P::EVENT_VERSION < E::EVENT_VERSION;
        Self { is_same_event, is_older, reader: P::reader, decode: upcast::<P, E> }
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{refusal, same};

    #[test]
    fn names_are_compared_to_their_ends() {
        assert!(same("a.b", "a.b") && same("", ""));
        for other in ["a.c", "a.bc", "a.", ""] {
            assert!(!same("a.b", other));
        }
    }

    #[test]
    fn a_refusal_by_serde_says_where_and_not_what() {
        let error = || serde_json::from_str::<u8>("\"alice\"").unwrap_err();
        let boxed: Box<dyn std::error::Error + Send + Sync> = error().into();
        let local: Box<dyn std::error::Error> = error().into();
        for text in [refusal(&error()), refusal(&boxed), refusal(&local)] {
            assert_eq!(text, "the JSON does not fit the type (line 1, column 7)");
        }
        assert_eq!(refusal(&"no total"), "no total");
    }
}

//! A value that is stored encrypted.

use super::keys::{KeyError, SealingKey, source};
use crate::event::{depth, is_finite, place};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    XNonce,
    aead::{Aead as _, Generate as _, Payload},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser::Error as _};
use std::{borrow::Cow, cell::RefCell, fmt, sync::OnceLock};

/// A value that is stored encrypted, and opened by whoever has the key.
///
/// It is sealed when the event is raised, with the current key of the [`KeySource`](super::KeySource) that was
/// [installed](super::install), and stored as an object that names the key: `{"alg", "key", "sealed"}`. Without a key
/// the event is not saved. It is opened when a handler asks, so a handler that does not ask needs no key.
///
/// The cipher is XChaCha20-Poly1305 under a random nonce: who has no key learns nothing but the length, and cannot
/// change the value unnoticed. The value is not bound to its row: who can write the table can move it to another one.
///
/// ```
/// use outbox_core::sensitive::{KeyRing, Sealed, SealingKey, with_keys};
///
/// let keys = KeyRing::new(SealingKey::new("2026-01", &[7; 32]));
/// with_keys(keys, || {
///     let email = Sealed::new("alice@example.com".to_owned());
///     let stored = serde_json::to_string(&email).unwrap();
///     assert!(!stored.contains("alice"));
///     let read: Sealed<String> = serde_json::from_str(&stored).unwrap();
///     assert_eq!(read.open().unwrap(), "alice@example.com");
///     assert_eq!(format!("{read:?}"), "Sealed");
/// });
/// ```
#[derive(Clone)]
pub struct Sealed<T>(State<T>);

#[derive(Clone)]
enum State<T> {
    Open(T),
    /// As it is stored, and what was found in it.
    Shut(Wire, OnceLock<T>),
}

/// The stored form.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Wire {
    alg: Cow<'static, str>,
    key: String,
    sealed: String,
}

const ALGORITHM: &str = "xchacha20poly1305";
const NONCE_BYTES: usize = 24;

/// Why a value was not sealed or opened. It never shows the value.
///
/// A handler that returns it with `?` is tried again while the key may still come, and refuses the message for good
/// when the value can never be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// No key source was installed.
    #[error("no key source is installed; call outbox_core::sensitive::install at the start of the process")]
    NoKeySource,
    /// The key source has no current key.
    #[error("there is no key to seal with: {reason}")]
    NoCurrentKey {
        /// The key source's words.
        reason: String,
    },
    /// The key is not there now.
    #[error("key {key:?} is not there: {reason}")]
    KeyUnavailable {
        /// Id of the key.
        key: String,
        /// The key source's words.
        reason: String,
    },
    /// The key was destroyed on purpose.
    #[error("key {key:?} was destroyed; what it sealed is gone for good")]
    KeyDestroyed {
        /// Id of the key.
        key: String,
    },
    /// It was changed after it was sealed, or the key source has another key under this id.
    #[error("key {key:?} does not open the value: it was changed, or sealed with another key of this id")]
    Corrupt {
        /// Id of the key.
        key: String,
    },
    /// A newer version sealed it.
    #[error("the value was sealed with {algorithm:?}, which this version does not know")]
    UnknownAlgorithm {
        /// The algorithm's name.
        algorithm: String,
    },
    /// serde could not write the value, or JSON cannot hold it.
    #[error("the value cannot be written as JSON")]
    Unwritable,
    /// What was opened is not of the type that the field has now.
    #[error("the value was opened, and is of another type: {place}")]
    Shape {
        /// Where in the opened JSON.
        place: String,
    },
}

impl SealError {
    /// Whether trying again can never help.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::NoKeySource | Self::NoCurrentKey { .. } | Self::KeyUnavailable { .. })
    }
}

impl<T> Sealed<T> {
    /// A value to be sealed when it is written.
    pub fn new(value: T) -> Self {
        Self(State::Open(value))
    }

    /// The id of the key that it was sealed with; `None` when it was not read from a row.
    pub fn key(&self) -> Option<&str> {
        match &self.0 {
            State::Open(_) => None,
            State::Shut(wire, _) => Some(&wire.key),
        }
    }
}

impl<T: DeserializeOwned> Sealed<T> {
    /// The value. It is decrypted once.
    ///
    /// # Errors
    ///
    /// When the key is not there, or the value is not what that key sealed.
    pub fn open(&self) -> Result<&T, SealError> {
        match &self.0 {
            State::Open(value) => Ok(value),
            State::Shut(wire, opened) => {
                if let Some(value) = opened.get() {
                    return Ok(value);
                }
                let value = wire.open()?;
                Ok(opened.get_or_init(|| value))
            }
        }
    }

    /// The value itself.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn into_inner(self) -> Result<T, SealError> {
        match self.0 {
            State::Open(value) => Ok(value),
            State::Shut(wire, opened) => opened.into_inner().map_or_else(|| wire.open(), Ok),
        }
    }
}

/// What is authenticated beside the value: an id or an algorithm that was changed is noticed.
fn associated(key: &str) -> String {
    format!("outbox/{ALGORITHM}/{key}")
}

impl Wire {
    fn seal<T: Serialize>(value: &T) -> Result<Self, SealError> {
        let source = source().ok_or(SealError::NoKeySource)?;
        let key = source.current().map_err(|error| SealError::NoCurrentKey { reason: error.to_string() })?;
        let json = serde_json::to_string(value).map_err(|_| SealError::Unwritable)?;
        // What the payload around it may not hold, the value may not hold either: it could not be read back.
        if depth(&json) > crate::event::MAX_PAYLOAD_DEPTH || (json.contains("null") && !is_finite(value)) {
            return Err(SealError::Unwritable);
        }
        let nonce = XNonce::generate();
        let associated = associated(key.id());
        let payload = Payload { msg: json.as_bytes(), aad: associated.as_bytes() };
        let text = key.cipher.encrypt(&nonce, payload).map_err(|_| SealError::Unwritable)?;
        let sealed = STANDARD.encode([nonce.as_slice(), &text].concat());
        Ok(Self { alg: ALGORITHM.into(), key: key.id().to_owned(), sealed })
    }

    fn open<T: DeserializeOwned>(&self) -> Result<T, SealError> {
        if self.alg != ALGORITHM {
            return Err(SealError::UnknownAlgorithm { algorithm: self.alg.clone().into_owned() });
        }
        let json = self.decrypt(&self.find_key()?)?;
        serde_json::from_slice(&json).map_err(|error| SealError::Shape { place: place(&error) })
    }

    fn find_key(&self) -> Result<SealingKey, SealError> {
        let key = self.key.clone();
        source().ok_or(SealError::NoKeySource)?.find(&self.key).map_err(|error| match error {
            KeyError::Unavailable(reason) => SealError::KeyUnavailable { key, reason },
            KeyError::Destroyed => SealError::KeyDestroyed { key },
        })
    }

    fn decrypt(&self, key: &SealingKey) -> Result<Vec<u8>, SealError> {
        let corrupt = || SealError::Corrupt { key: self.key.clone() };
        let bytes = STANDARD.decode(&self.sealed).map_err(|_| corrupt())?;
        let (nonce, text) = bytes.split_at_checked(NONCE_BYTES).ok_or_else(corrupt)?;
        let nonce = XNonce::try_from(nonce).map_err(|_| corrupt())?;
        let associated = associated(&self.key);
        let payload = Payload { msg: text, aad: associated.as_bytes() };
        key.cipher.decrypt(&nonce, payload).map_err(|_| corrupt())
    }
}

thread_local! {
    static REFUSAL: RefCell<Option<SealError>> = const { RefCell::new(None) };
}

/// Why the last value of this thread was not sealed: serde's error has only its text, among others.
pub(crate) fn take_refusal() -> Option<SealError> {
    REFUSAL.take()
}

impl<T: Serialize> Serialize for Sealed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            State::Shut(wire, _) => wire.serialize(serializer),
            State::Open(value) => match Wire::seal(value) {
                Ok(wire) => wire.serialize(serializer),
                Err(error) => {
                    let text = S::Error::custom(&error);
                    REFUSAL.set(Some(error));
                    Err(text)
                }
            },
        }
    }
}

impl<'de, T> Deserialize<'de> for Sealed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Wire::deserialize(deserializer).map(|wire| Self(State::Shut(wire, OnceLock::new())))
    }
}

/// Shows nothing of the value.
impl<T> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed")
    }
}

/// Of two that are not open the sealed forms are compared: they are equal when one is a copy of the other.
impl<T: PartialEq> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (State::Open(a), State::Open(b)) => a == b,
            (State::Shut(a, _), State::Shut(b, _)) => a == b,
            _ => false,
        }
    }
}

impl<T: JsonSchema> JsonSchema for Sealed<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Sealed_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let inner = generator.subschema_for::<T>();
        json_schema!({
            "type": "object",
            "properties": {
                "alg": { "type": "string" },
                "key": { "type": "string" },
                "sealed": { "type": "string", "contentEncoding": "base64" },
            },
            "required": ["alg", "key", "sealed"],
            "x-outbox-sealed": inner,
        })
    }
}

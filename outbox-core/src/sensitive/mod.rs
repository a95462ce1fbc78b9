//! Values that must not be stored as they are.
//!
//! The outbox table, its backups and its replicas hold payloads in plaintext. `#[outbox(sensitive)]` on a field of an
//! event says that this value must not be among them; it is a compile error unless the field's type keeps it:
//!
//! * [`Redacted<T>`]: the value is in memory only, and `null` is stored;
//! * [`Sealed<T>`] (feature `seal`): the value is stored encrypted, and opened by handlers that have the key.
//!
//! `Debug` of both shows nothing of the value, so an event that derives `Debug` may be logged.

#[cfg(feature = "seal")]
mod keys;
mod redacted;
#[cfg(feature = "seal")]
mod sealed;

#[cfg(feature = "seal")]
pub use keys::{AlreadyInstalled, KeyError, KeyRing, KeySource, SealingKey, install, with_keys};
pub use redacted::Redacted;
#[cfg(feature = "seal")]
pub use sealed::{SealError, Sealed};

#[cfg(feature = "seal")]
pub(crate) use sealed::take_refusal;

/// A type whose stored form shows nothing of its value.
///
/// Implementing it for a type of one's own promises that its `Serialize` and its `Debug` never show the value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is stored in plaintext, and its field is marked as sensitive",
    label = "plaintext",
    note = "use `Sealed<T>` (feature `seal` of outbox-core), which is stored encrypted, or `Redacted<T>`, which is not stored at all"
)]
pub trait SensitiveField {}

impl<T> SensitiveField for Redacted<T> {}
#[cfg(feature = "seal")]
impl<T> SensitiveField for Sealed<T> {}
impl<T: SensitiveField> SensitiveField for Option<T> {}
impl<T: SensitiveField> SensitiveField for Box<T> {}
impl<T: SensitiveField> SensitiveField for Vec<T> {}

/// Asks for a sensitive type; named by expansions.
#[doc(hidden)]
pub const fn sensitive<T: SensitiveField>() {}

//! How a handler says that it failed.

use crate::{
    decide::{Failure, MAX_ERROR_CHARS},
    event::place,
    row::ErrorClass,
};
use std::{error::Error, fmt, time::Duration};

type Source = Box<dyn Error + Send + Sync>;

/// A handler's failure and what to do about it.
///
/// Every [`std::error::Error`] converts with `?` and counts as **transient**: the message is tried again after a
/// backoff until its attempts are used up. [`terminal`](Self::terminal) refuses it for good.
///
/// It is deliberately not an `Error` itself, so that the conversion can be for every error.
pub struct HandlerError {
    class: ErrorClass,
    retry_after: Option<Duration>,
    source: Source,
}

impl HandlerError {
    /// May pass: try again later. For values that are no `std::error::Error`, such as a text.
    pub fn transient(error: impl Into<Source>) -> Self {
        Self { class: ErrorClass::Transient, retry_after: None, source: error.into() }
    }

    /// Will never pass: keep the message as a dead letter at once.
    pub fn terminal(error: impl Into<Source>) -> Self {
        Self { class: ErrorClass::Terminal, retry_after: None, source: error.into() }
    }

    /// What the handler needs is down, which says nothing about the message: the attempt is given back, the row waits, and
    /// the handler is left alone until a probe gets through. See [`CircuitPolicy`](crate::router::CircuitPolicy).
    pub fn unavailable(error: impl Into<Source>) -> Self {
        Self { class: ErrorClass::Unavailable, retry_after: None, source: error.into() }
    }

    /// The effect may have happened, and nobody can tell: the message is a dead letter at once, so that it is not
    /// repeated blindly. Somebody has to look, and then replays or skips it.
    pub fn uncertain(error: impl Into<Source>) -> Self {
        Self { class: ErrorClass::Uncertain, retry_after: None, source: error.into() }
    }

    /// The row's lease was lost while it was handled, so nothing of the handling may stay; somebody else owns the row. For
    /// implementations of [`Finish`](super::Finish).
    pub fn lease_lost(error: impl Into<Source>) -> Self {
        Self { class: ErrorClass::LeaseExpired, retry_after: None, source: error.into() }
    }

    pub(crate) fn decode(error: impl Into<Source>) -> Self {
        Self { class: ErrorClass::Decode, retry_after: None, source: error.into() }
    }

    /// Asks for a delay instead of the backoff; at most one day is granted. Without effect on a terminal error.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    #[cfg(feature = "tower")]
    pub(crate) fn of_class(class: ErrorClass, retry_after: Option<Duration>, source: Source) -> Self {
        Self { class, retry_after, source }
    }

    #[cfg(feature = "tower")]
    pub(crate) fn source(&self) -> &(dyn Error + 'static) {
        &*self.source
    }

    #[cfg(feature = "tower")]
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.retry_after
    }

    /// What kind of failure it is.
    pub fn class(&self) -> ErrorClass {
        self.class
    }

    /// The failure as it is stored: the error and its sources, without NUL, cut to 2,000 characters.
    pub(crate) fn into_failure(self) -> Failure {
        let mut text = told(&*self.source);
        let mut cause = self.source.source();
        // An error may be among its own sources. A character has at most four bytes.
        while let Some(error) = cause.filter(|_| text.len() < 4 * MAX_ERROR_CHARS) {
            text.push_str(": ");
            text.push_str(&told(error));
            cause = error.source();
        }
        Failure { retry_after: self.retry_after, ..Failure::new(self.class, &text) }
    }
}

/// An error's own words, unless it is serde's: those quote the value that it stumbled over, and what a handler reads is
/// often what it was given.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    error.downcast_ref::<serde_json::Error>().map_or_else(|| error.to_string(), place)
}

impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        #[cfg(feature = "seal")]
        {
            use crate::sensitive::SealError;
            let any: &dyn std::any::Any = &error;
            if any.downcast_ref::<SealError>().is_some_and(SealError::is_final) {
                return Self::terminal(error);
            }
        }
        Self::transient(error)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerError({}: {})", self.class, told(&*self.source))
    }
}

/// Says on the spot what an error means.
///
/// ```
/// use outbox_core::{HandlerError, ResultExt};
/// use std::time::Duration;
///
/// fn check(cents: i64) -> Result<(), HandlerError> {
///     if cents < 0 {
///         Err("negative total").terminal()?;
///     }
///     "7".parse::<u32>().retry_after(Duration::from_secs(30))?;
///     Ok(())
/// }
/// # assert!(check(1).is_ok() && check(-1).is_err());
/// ```
pub trait ResultExt<T> {
    /// The error will never pass.
    ///
    /// # Errors
    ///
    /// The same error, as a terminal [`HandlerError`].
    fn terminal(self) -> Result<T, HandlerError>;

    /// What the handler needs is down; see [`HandlerError::unavailable`].
    ///
    /// # Errors
    ///
    /// The same error, as an unavailable [`HandlerError`].
    fn unavailable(self) -> Result<T, HandlerError>;

    /// The effect may have happened; see [`HandlerError::uncertain`].
    ///
    /// # Errors
    ///
    /// The same error, as an uncertain [`HandlerError`].
    fn uncertain(self) -> Result<T, HandlerError>;

    /// The error may pass after this delay.
    ///
    /// # Errors
    ///
    /// The same error, as a transient [`HandlerError`].
    fn retry_after(self, delay: Duration) -> Result<T, HandlerError>;
}

impl<T, E: Into<Source>> ResultExt<T> for Result<T, E> {
    fn terminal(self) -> Result<T, HandlerError> {
        self.map_err(HandlerError::terminal)
    }

    fn unavailable(self) -> Result<T, HandlerError> {
        self.map_err(HandlerError::unavailable)
    }

    fn uncertain(self) -> Result<T, HandlerError> {
        self.map_err(HandlerError::uncertain)
    }

    fn retry_after(self, delay: Duration) -> Result<T, HandlerError> {
        self.map_err(|error| HandlerError::transient(error).retry_after(delay))
    }
}

//! Panics of the user's code, which must end nothing but that code.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the user's code.
///
/// # Errors
///
/// What it panicked with, if that is a text.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Option<String>> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        // The value may panic in turn when it is dropped, and so may that one's: it is leaked then.
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(another);
        }
        text
    })
}

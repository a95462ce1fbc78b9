//! Handlers that `#[handler]` registered.

use crate::router::RouterBuilder;
use std::fmt;

/// Where something was written, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    file: &'static str,
    line: u32,
}

impl Source {
    /// This place.
    pub const fn new(file: &'static str, line: u32) -> Self {
        Self { file, line }
    }

    #[track_caller]
    pub(crate) fn caller() -> Self {
        let place = std::panic::Location::caller();
        Self { file: place.file(), line: place.line() }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A handler as `#[handler]` registers it.
#[derive(Clone, Copy, Debug)]
pub struct HandlerDescriptor {
    /// Its stable id.
    pub id: &'static str,
    /// Path of the module that declares it.
    pub module: &'static str,
    /// Source file of the declaration.
    pub file: &'static str,
    /// Line in that file.
    pub line: u32,
    /// Puts it into a router.
    pub install: fn(&mut RouterBuilder),
}

inventory::collect!(HandlerDescriptor);

/// Every handler that is linked into this binary, sorted by id and place.
pub(crate) fn discovered() -> Vec<&'static HandlerDescriptor> {
    let mut handlers: Vec<_> = inventory::iter::<HandlerDescriptor>.into_iter().collect();
    handlers.sort_by_key(|handler| (handler.id, handler.file, handler.line));
    handlers
}

//! The integration tests, one binary. Each module says in a sentence what belongs into it.

/// The store's contract, on all four stores.
mod conformance;

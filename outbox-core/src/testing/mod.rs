//! For tests of code that uses the outbox: a store in memory that behaves as the SQL stores do.

mod memory_store;

pub use memory_store::{HistoryEntry, MemoryStore};

//! What operators ask, in the SQL of each backend. None of it is on the way of an event.

pub(super) mod mysql;
pub(super) mod postgres;
pub(super) mod sqlite;

/// The statements of one backend.
#[derive(Debug)]
pub(crate) struct Operate {
    /// The next names and versions that have live rows, in order; perhaps fewer than there are, but not none.
    pub(crate) walk_events: &'static str,
    /// Counts live rows of some events: `event` for each of them, where `blocked` holds the keys that wait.
    pub(crate) events: &'static str,
    pub(crate) event: &'static str,
    /// Counts dead letters that nobody has resolved or replayed, by event and class.
    pub(crate) dead_letters: &'static str,
    /// Counts the live rows behind some rows of their keys.
    pub(crate) all_followers: &'static str,
    /// Rows to look at, under conditions and in an order.
    pub(crate) list: &'static str,
    /// Its columns for payload and headers.
    pub(crate) contents: &'static str,
    /// A condition on dead letters that nobody has resolved, in the words of their index.
    pub(crate) is_unresolved: &'static str,
}

//! What came of running a relay to the end.

use super::Stored;
use crate::{relay::PassReport, row::Status};

/// What [`TestRelay::drain`](super::TestRelay::drain) did, and what it left.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Drained {
    /// How many passes it took.
    pub passes: u32,
    /// How many of them crashed.
    pub crashes: u32,
    /// What the others did, together.
    pub report: PassReport,
    /// Rows that are not done: neither dispatched nor resolved. Dead letters; rows that no handler reads; rows whose handlers
    /// are unavailable or paused again and again.
    pub left: Stored,
}

impl Drained {
    /// Checks that nothing is left.
    ///
    /// # Panics
    ///
    /// When something is, with what it is and why.
    #[track_caller]
    pub fn assert_all_dispatched(&self) {
        let Self { passes, left, .. } = self;
        assert!(left.rows().is_empty(), "after {passes} passes there are left {left}");
    }

    /// Checks that only dead letters are left, and how many.
    ///
    /// # Panics
    ///
    /// When there are more or fewer, or anything else is left.
    #[track_caller]
    pub fn assert_dead(&self, count: usize) {
        let Self { passes, left, .. } = self;
        let is_so = left.count(Status::Dead) == count && left.rows().len() == count;
        assert!(is_so, "{count} dead letters were to be left, but after {passes} passes there are {left}");
    }
}

//! What a pass did.

use crate::decide::Transition;

/// Counts of what a relay did with its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassReport {
    /// Rows claimed, those taken over included.
    pub claimed: u64,
    /// Rows taken over from an expired lease, to run alone.
    pub taken_over: u64,
    /// Rows whose handlers have all succeeded.
    pub dispatched: u64,
    /// Rows that are tried again later.
    pub retried: u64,
    /// Rows that wait, with their attempt given back, because a handler is paused or what it needs is down.
    pub waiting: u64,
    /// Rows that became dead letters, those buried at a take-over included.
    pub dead: u64,
    /// Rows given back unstarted.
    pub released: u64,
    /// Rows whose lease was lost before their mark could be written: another relay owns or finished them.
    pub lost: u64,
}

impl PassReport {
    #[cfg(feature = "testing")]
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { claimed, taken_over, dispatched, retried, waiting, dead, released, lost } = other;
        self.claimed += claimed;
        self.taken_over += taken_over;
        self.dispatched += dispatched;
        self.retried += retried;
        self.waiting += waiting;
        self.dead += dead;
        self.released += released;
        self.lost += lost;
    }

    pub(crate) fn decided(&mut self, transition: &Transition) {
        let count = match transition {
            Transition::Dispatched | Transition::Deleted => &mut self.dispatched,
            Transition::Retry { .. } => &mut self.retried,
            Transition::Wait { .. } => &mut self.waiting,
            Transition::Dead(_) => &mut self.dead,
            Transition::Release => &mut self.released,
        };
        *count += 1;
    }
}

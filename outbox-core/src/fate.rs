//! How a transaction ended, for those who took part in it.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering::SeqCst},
};

/// What is known of the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It has not ended, or a part of it was released into one that has not.
    Open,
    /// Its commit was sent and nobody answered.
    Unknown,
    /// It is stored.
    Committed,
    /// It is undone, or the transaction around it is.
    RolledBack,
}

const OPEN: u8 = 0;
const UNKNOWN: u8 = 1;
const COMMITTED: u8 = 2;
const ROLLED_BACK: u8 = 3;

/// The end of one transaction or savepoint, shared by everything that was saved in it.
///
/// Dropping the [`Ending`] that belongs to it, without a word, is a rollback: that is what a database makes of it.
#[derive(Clone, Debug)]
pub struct Fate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    end: AtomicU8,
    /// The transaction that a savepoint is released into.
    around: Option<Fate>,
}

impl Fate {
    /// What is known now.
    pub fn end(&self) -> End {
        match (self.0.end.load(SeqCst), &self.0.around) {
            (COMMITTED, Some(around)) => around.end(),
            (COMMITTED, None) => End::Committed,
            (ROLLED_BACK, _) => End::RolledBack,
            (UNKNOWN, _) => End::Unknown,
            // Open, unless the transaction around it has ended without it.
            (_, Some(around)) if around.end() == End::RolledBack => End::RolledBack,
            _ => End::Open,
        }
    }
}

/// Decides a [`Fate`]; held by the transaction itself.
#[derive(Debug)]
pub struct Ending(Fate);

impl Ending {
    /// The ending of a transaction, or of a savepoint within another.
    pub fn of(around: Option<&Fate>) -> Self {
        Self(Fate(Arc::new(Shared { end: AtomicU8::new(OPEN), around: around.cloned() })))
    }

    /// What it decides.
    pub fn fate(&self) -> &Fate {
        &self.0
    }

    /// A commit is about to be sent.
    pub fn commit_sent(&self) {
        self.0.0.end.store(UNKNOWN, SeqCst);
    }

    /// The commit, or the release of the savepoint, was answered.
    pub fn committed(self) {
        self.0.0.end.store(COMMITTED, SeqCst);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // Neither committed nor sent: whatever happens to the transaction now, it is not a commit.
        let _ = self.0.0.end.compare_exchange(OPEN, ROLLED_BACK, SeqCst, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_savepoint_shares_the_end_of_the_transaction_around_it() {
        let outer = Ending::of(None);
        let released = Ending::of(Some(outer.fate()));
        let undone = Ending::of(Some(outer.fate()));
        let (a, b) = (released.fate().clone(), undone.fate().clone());
        assert_eq!((a.end(), b.end()), (End::Open, End::Open));
        released.committed();
        drop(undone);
        assert_eq!((a.end(), b.end()), (End::Open, End::RolledBack));
        let top = outer.fate().clone();
        outer.committed();
        assert_eq!((top.end(), a.end(), b.end()), (End::Committed, End::Committed, End::RolledBack));
    }

    #[test]
    fn an_outer_rollback_undoes_what_was_released() {
        let outer = Ending::of(None);
        let inner = Ending::of(Some(outer.fate()));
        let fate = inner.fate().clone();
        inner.committed();
        drop(outer);
        assert_eq!(fate.end(), End::RolledBack);
    }

    #[test]
    fn a_commit_without_an_answer_is_neither() {
        let ending = Ending::of(None);
        let fate = ending.fate().clone();
        ending.commit_sent();
        drop(ending);
        assert_eq!(fate.end(), End::Unknown);
    }
}

//! Whether the savepoints of a transaction can be trusted.

use crate::dialect::undoes_transaction;
use sea_orm::DbErr;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst},
    },
};

/// What happened to a transaction, and what to do.
const TROUBLES: [&str; 3] = [
    "a save, begin, commit or rollback in this transaction was dropped half-way, so its savepoints cannot be trusted; \
     roll it back and start anew",
    "the database has undone this transaction because of an earlier error, such as a deadlock; roll it back and start \
     anew",
    "a savepoint was still open in what is to be committed or rolled back around it, or was ended before one within it; \
     end savepoints from the inside out, roll back and start anew",
];
const DROPPED: u8 = 1;
const UNDONE: u8 = 2;
const CROSSED: u8 = 3;

/// Shared by all levels of a transaction.
#[derive(Debug, Default)]
struct Health {
    /// None yet, or one of the troubles, by its number.
    trouble: AtomicU8,
    /// Levels that have not ended.
    open: AtomicUsize,
}

/// One level of a transaction: itself, or a savepoint within.
///
/// The database and SeaORM know levels by how deep they are, and not by their handles. So a level that ends while a deeper
/// one is open would end that one instead; it is refused, and the transaction with it.
#[derive(Debug)]
pub(super) struct Level {
    health: Arc<Health>,
    /// From 1, the transaction itself.
    depth: usize,
}

impl Level {
    pub(super) fn top() -> Self {
        Self::of(Arc::default())
    }

    /// A savepoint that was begun just now.
    pub(super) fn savepoint(&self) -> Self {
        Self::of(self.health.clone())
    }

    fn of(health: Arc<Health>) -> Self {
        let depth = health.open.fetch_add(1, SeqCst) + 1;
        Self { health, depth }
    }

    pub(super) fn is_savepoint(&self) -> bool {
        self.depth > 1
    }

    /// Whether it may be used.
    pub(super) fn check(&self) -> Result<(), DbErr> {
        match self.health.trouble.load(SeqCst) {
            0 => Ok(()),
            trouble => Err(DbErr::Custom(TROUBLES[usize::from(trouble) - 1].to_owned())),
        }
    }

    /// Whether it may be committed: it is the innermost one.
    pub(super) fn check_end(&self) -> Result<(), DbErr> {
        if self.health.open.load(SeqCst) != self.depth {
            self.health.damage(CROSSED);
        }
        self.check()
    }

    /// Runs something that moves a savepoint. Dropped half-way, it leaves the transaction damaged.
    pub(super) async fn guarded<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        self.check()?;
        self.health.damage(DROPPED);
        let done = work.await;
        self.health.trouble.store(0, SeqCst);
        self.noted(done)
    }

    /// Remembers an error with which the database has undone everything: what is sent after it would be stored at once.
    pub(super) fn noted<T>(&self, done: Result<T, DbErr>) -> Result<T, DbErr> {
        done.inspect_err(|error| {
            if undoes_transaction(error) {
                self.health.damage(UNDONE);
            }
        })
    }
}

impl Health {
    /// The first trouble stays.
    fn damage(&self, trouble: u8) {
        let _ = self.trouble.compare_exchange(0, trouble, SeqCst, SeqCst);
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        if self.health.open.fetch_sub(1, SeqCst) != self.depth {
            self.health.damage(CROSSED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Level;
    use sea_orm::DbErr;
    use std::future::Future as _;

    fn no_waiting() -> std::task::Context<'static> {
        std::task::Context::from_waker(std::task::Waker::noop())
    }

    #[test]
    fn what_was_dropped_half_way_is_not_trusted_again() {
        let top = Level::top();
        let savepoint = top.savepoint();
        let mut endless = Box::pin(savepoint.guarded(std::future::pending::<Result<(), DbErr>>()));
        assert!(savepoint.check().is_ok(), "nothing was sent yet");
        assert!(endless.as_mut().poll(&mut no_waiting()).is_pending());
        drop(endless);
        assert!(top.check().is_err());
    }

    #[test]
    fn what_ended_is_trusted_even_when_it_failed() {
        let top = Level::top();
        let failed = top.guarded(std::future::ready(Err::<(), _>(DbErr::Custom("no".to_owned()))));
        assert!(std::pin::pin!(failed).poll(&mut no_waiting()).is_ready());
        assert!(top.check().is_ok());
    }

    #[test]
    fn a_level_ends_only_after_those_within_it() {
        let top = Level::top();
        let (first, second) = (top.savepoint(), top.savepoint());
        assert!(second.check_end().is_ok());
        drop(second);
        assert!(top.check().is_ok());
        assert!(top.check_end().is_err(), "the first savepoint is open");
        assert!(first.check_end().is_err(), "it could undo what it does not know");
    }

    #[test]
    fn a_savepoint_that_outlives_its_transaction_is_not_committed() {
        let top = Level::top();
        let savepoint = top.savepoint();
        drop(top);
        assert!(savepoint.check_end().is_err());
    }
}

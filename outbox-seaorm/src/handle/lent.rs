//! The transaction of one call, from its first use to its end.

use super::Transactions;
use crate::{dialect::has_no_savepoint, transaction::OutboxTransaction};
use outbox_core::HandlerError;
use sea_orm::{ConnectionTrait, DbErr};
use tokio::sync::{OnceCell, OwnedSemaphorePermit};

/// It is there as long as the transaction that was lent: whatever ends that one, ends this one.
const BEGIN_MARK: &str = "SAVEPOINT outbox_handler";
const END_MARK: &str = "RELEASE SAVEPOINT outbox_handler";

pub(super) struct Lent {
    pub(super) transactions: Transactions,
    begun: OnceCell<Begun>,
}

/// In this order: the next writer of SQLite has its turn when the transaction has ended.
pub(super) struct Begun {
    pub(super) tx: OutboxTransaction,
    pub(super) turn: Option<OwnedSemaphorePermit>,
}

impl Lent {
    pub(super) fn of(transactions: Transactions) -> Self {
        Self { transactions, begun: OnceCell::new() }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.begun.initialized()
    }

    pub(super) async fn begin(&self) -> Result<&OutboxTransaction, DbErr> {
        let begin = || async {
            let Transactions { db, turn, .. } = &self.transactions;
            let turn = match turn {
                // It is never closed.
                Some(turn) => turn.clone().acquire_owned().await.ok(),
                None => None,
            };
            let tx = OutboxTransaction::begin_handler(db).await?;
            tx.execute_unprepared(BEGIN_MARK).await?;
            Ok(Begun { tx, turn })
        };
        self.begun.get_or_try_init(begin).await.map(|begun| &begun.tx)
    }

    /// Takes back what was lent.
    pub(super) fn taken_back(self) -> (Transactions, Option<Begun>) {
        (self.transactions, self.begun.into_inner())
    }
}

/// Whether the transaction is still the one that was lent, and can be committed.
///
/// # Errors
///
/// Why not. When the handler has ended it, nobody knows what of it is stored.
pub(super) async fn check(tx: &OutboxTransaction) -> Result<(), HandlerError> {
    tx.check_end()?;
    match tx.execute_unprepared(END_MARK).await {
        Ok(_) => Ok(()),
        Err(error) if has_no_savepoint(&error) => Err(HandlerError::uncertain(
            "the handler ended the transaction that it was lent, with COMMIT, ROLLBACK, or a statement that commits by \
             itself; what of its effect is stored is not known. Remove that statement, look at the effect, then replay or \
             skip the message",
        )),
        Err(error) => Err(error.into()),
    }
}

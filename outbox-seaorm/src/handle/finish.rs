//! The end of a handler's transaction: progress, then commit.

use super::{
    Transactions,
    lent::{Begun, Lent, check},
};
use crate::{
    convert::progress,
    dialect::Dialect,
    sql::{Holes, statement},
    transaction::OutboxTransaction,
};
use outbox_core::{
    HandlerError,
    handler::{Finish, Handled, HandlerFuture},
    row::HandlerState,
};
use sea_orm::{ConnectionTrait, DbErr, Statement};
use serde_json::json;
use std::{future::Future, pin::Pin, sync::Arc};

const STILL_HELD: &str = "a task that the handler has spawned still holds its transaction, so it was not committed; \
    let the handler await the task";

const LEASE_LOST: &str = "another relay owns the row by now, so the handler's transaction was rolled back. If it \
    happens to every message, `Transactions` has not the database and the table names of the relay's store";

impl Finish for Lent {
    fn finish(self: Arc<Self>, handled: Handled) -> HandlerFuture {
        Box::pin(async move {
            let lent = Arc::into_inner(self).ok_or_else(|| HandlerError::transient(STILL_HELD))?;
            let (transactions, begun) = lent.taken_back();
            let Some(Begun { tx, turn }) = begun else { return Ok(()) };
            let ended = match written(&transactions, &tx, &handled).await {
                Ok(Written::Now) => tx.commit().await.map_err(HandlerError::from),
                // A commit whose answer was lost, and then a layer that called the handler again.
                Ok(Written::Before) => tx.rollback().await.map_err(HandlerError::from),
                Err(error) => {
                    // The error says more than a failing rollback, and what was not committed is undone anyway.
                    drop(tx.rollback().await);
                    Err(error)
                }
            };
            drop(turn);
            ended
        })
    }

    /// Rolls back at once; a transaction that is only dropped keeps its locks until its connection is used again.
    fn undo(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if let Some((_, Some(Begun { tx, turn }))) = Arc::into_inner(self).map(Lent::taken_back) {
                if let Err(error) = tx.rollback().await {
                    tracing::debug!(%error, "the rollback failed; what was not committed is undone anyway");
                }
                drop(turn);
            }
        })
    }
}

/// When the handler's progress was written.
enum Written {
    Now,
    Before,
}

/// Writes that the handler is done, under the token of the claim and as the last statement.
async fn written(
    transactions: &Transactions,
    tx: &OutboxTransaction,
    handled: &Handled,
) -> Result<Written, HandlerError> {
    check(tx).await?;
    let dialect = Dialect::of(tx.get_database_backend())?;
    let Handled { row, token, handler, .. } = handled;
    let done = json!({ &**handler: HandlerState::Done }).to_string();
    let own = Holes::default().with("id", row.0).with("token", token.0);
    let holes = own.clone().with("handler", &**handler).with("done", done);
    let sent = |sql, holes: &Holes| -> Statement {
        statement(dialect.backend, &transactions.tables.for_backend(dialect.backend), sql, holes)
    };
    if tx.execute_raw(sent(dialect.finish_handler, &holes)).await?.rows_affected() > 0 {
        return Ok(Written::Now);
    }
    let before: Result<_, DbErr> = tx.query_one_raw(sent(dialect.own_progress, &own)).await;
    match before? {
        Some(own) if progress(&own, *row)?.contains_key(&**handler) => Ok(Written::Before),
        _ => Err(HandlerError::lease_lost(LEASE_LOST)),
    }
}

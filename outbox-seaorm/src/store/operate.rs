//! An operator's verbs. Each locks its row, asks the core whether the row's state allows it, and only then writes.

use super::{SeaOrmStore, control::kind_of, retry::is_conflict};
use crate::{
    convert::{progress, store_error},
    sql::Holes,
};
use chrono::{DateTime, Utc};
use outbox_core::{
    ErrorClass, MessageId, RowId, Status, StoreError,
    decide::{LEASE_EXPIRED, Problem, RowState, SKIPPED},
    row::{HandlerState, Progress},
    store::{
        BlockedKey, ListRequest, OperateError, OutboxOperator, Page, Pause, Replay, Shown, Signals,
        StoreErrorKind,
    },
};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};

/// A locked row that a verb may change: what it needs to know of it.
struct Locked {
    status: Status,
    replay_of: Option<i64>,
    progress: Progress,
    message_id: MessageId,
}

type Rule = fn(RowState) -> Result<(), Problem>;

impl OutboxOperator for SeaOrmStore {
    async fn replay(&self, replay: &Replay<'_>) -> Result<RowId, OperateError> {
        OperateError::check_texts(replay.by, replay.reason)?;
        again(|| async move {
            let (tx, Locked { mut progress, message_id, .. }) =
                self.locked(replay.id, None, RowState::replay).await?;
            progress.retain(|_, state| *state == HandlerState::Done && !replay.all_handlers);
            let progress = (!progress.is_empty()).then(|| serde_json::json!(progress).to_string());
            let holes = Holes::default()
                .with("message_id", MessageId::new().as_uuid())
                .with("progress", progress)
                .with("conversation", message_id.to_string())
                .with("by", replay.by)
                .with("reason", replay.reason)
                .with("id", replay.id.0);
            self.execute(&tx, self.dialect.replay, &holes).await.map_err(failed)?;
            let row = tx.query_one_raw(self.statement(self.dialect.row_id, &holes)).await.map_err(failed)?;
            let row = row.ok_or_else(|| failed(DbErr::RecordNotInserted))?;
            let id = row.try_get::<i64>("", "id").map_err(failed)?;
            tx.commit().await.map_err(failed)?;
            Ok(RowId(id))
        })
        .await
    }

    async fn skip(
        &self,
        id: RowId,
        by: &str,
        reason: Option<&str>,
        now: Option<DateTime<Utc>>,
    ) -> Result<(), OperateError> {
        OperateError::check_texts(by, reason)?;
        again(|| async move {
            let (tx, Locked { status, replay_of, .. }) = self.locked(id, now, RowState::skip).await?;
            let holes = self
                .dialect
                .at(now)
                .with("id", id.0)
                .with("by", by)
                .with("reason", reason)
                .with("class", ErrorClass::Skipped.as_str())
                .with("error", SKIPPED);
            let dead = status == Status::Dead;
            let sql = if dead { self.dialect.skip_dead } else { self.dialect.skip_pending };
            self.execute(&tx, sql, &holes).await.map_err(failed)?;
            self.resolve_chain(&tx, replay_of, now).await.map_err(failed)?;
            Ok(tx.commit().await.map_err(failed)?)
        })
        .await
    }

    async fn retry_now(&self, id: RowId, now: Option<DateTime<Utc>>) -> Result<(), OperateError> {
        again(|| async move {
            let (tx, _) = self.locked(id, now, RowState::retry_now).await?;
            let holes = self.dialect.at(now).with("id", id.0);
            self.execute(&tx, self.dialect.retry_now, &holes).await.map_err(failed)?;
            Ok(tx.commit().await.map_err(failed)?)
        })
        .await
    }

    async fn release(&self, id: RowId, now: Option<DateTime<Utc>>) -> Result<(), OperateError> {
        again(|| async move {
            let (tx, _) = self.locked(id, now, RowState::release).await?;
            let holes = self
                .dialect
                .at(now)
                .with("id", id.0)
                .with("class", ErrorClass::LeaseExpired.as_str())
                .with("error", LEASE_EXPIRED);
            for sql in [self.dialect.record_expiry, self.dialect.release_expired] {
                self.execute(&tx, sql, &holes).await.map_err(failed)?;
            }
            Ok(tx.commit().await.map_err(failed)?)
        })
        .await
    }

    async fn blocked_keys(
        &self,
        limit: u32,
        now: Option<DateTime<Utc>>,
    ) -> Result<Vec<BlockedKey>, StoreError> {
        super::blocked::blocked_keys(self, limit, now).await
    }

    async fn signals(&self, now: Option<DateTime<Utc>>) -> Result<Signals, StoreError> {
        super::signals::signals(self, now).await
    }

    async fn list(&self, request: &ListRequest<'_>) -> Result<Page, StoreError> {
        super::list::list(self, request).await
    }

    async fn show(&self, id: RowId, contents: bool) -> Result<Shown, OperateError> {
        super::list::show(self, id, contents).await
    }

    async fn pause(&self, pause: &Pause, by: &str, reason: Option<&str>) -> Result<(), OperateError> {
        OperateError::check_texts(by, reason)?;
        OperateError::check_pause(pause)?;
        let holes = self
            .dialect
            .at(None)
            .with("kind", kind_of(pause))
            .with("name", pause.name())
            .with("by", by)
            .with("reason", reason);
        self.write(self.dialect.pause, &holes).await.map_err(failed)?;
        Ok(())
    }

    async fn resume(&self, pause: &Pause) -> Result<bool, OperateError> {
        if OperateError::check_pause(pause).is_err() {
            return Ok(false); // It was never stored.
        }
        let holes = Holes::default().with("kind", kind_of(pause)).with("name", pause.name());
        Ok(self.write(self.dialect.resume, &holes).await.map_err(failed)? > 0)
    }
}

impl SeaOrmStore {
    /// Begins a transaction and locks the row in it, if its state allows what is to be done.
    async fn locked(
        &self,
        id: RowId,
        now: Option<DateTime<Utc>>,
        rule: Rule,
    ) -> Result<(DatabaseTransaction, Locked), OperateError> {
        let tx = self.begin().await.map_err(failed)?;
        match self.permitted(&tx, id, now, rule).await {
            Ok(locked) => Ok((tx, locked)),
            Err(refusal) => {
                // A transaction that is only dropped keeps its lock for a while, and claims pass over the row.
                tx.rollback().await.map_err(failed)?;
                Err(refusal)
            }
        }
    }

    async fn permitted(
        &self,
        tx: &DatabaseTransaction,
        id: RowId,
        now: Option<DateTime<Utc>>,
        rule: Rule,
    ) -> Result<Locked, OperateError> {
        let holes = self.dialect.at(now).with("id", id.0);
        // The state is read in a second statement: what it says of other rows must be younger than the lock.
        tx.query_one_raw(self.statement(self.dialect.lock_row, &holes)).await.map_err(failed)?;
        let found = tx.query_one_raw(self.statement(self.dialect.row_state, &holes)).await.map_err(failed)?;
        let Some(row) = found else { return Err(OperateError::NotFound(id)) };
        let status = row.try_get::<String>("", "status").map_err(failed)?;
        let status = status.parse().map_err(|error| {
            let message = format!("outbox row {id} has a status that a newer version wrote");
            StoreError::new(StoreErrorKind::UnreadableRow, message).with_source(error)
        })?;
        let flag = |column| row.try_get::<bool>("", column).map_err(failed);
        let state = RowState {
            status,
            resolved: flag("resolved")?,
            replayed: flag("replayed")?,
            lease_expired: flag("lease_expired")?,
        };
        rule(state).map_err(|problem| OperateError::State { id, status, problem })?;
        let replay_of = row.try_get("", "replay_of").map_err(failed)?;
        let message_id = row.try_get::<uuid::Uuid>("", "message_id").map_err(failed)?.into();
        Ok(Locked { status, replay_of, progress: progress(&row, id)?, message_id })
    }

    /// Resolves a dead letter and those that it replays in turn.
    pub(super) async fn resolve_chain(
        &self,
        tx: &DatabaseTransaction,
        mut next: Option<i64>,
        now: Option<DateTime<Utc>>,
    ) -> Result<(), DbErr> {
        while let Some(id) = next {
            let holes = self.dialect.at(now).with("id", id);
            self.execute(tx, self.dialect.resolve, &holes).await?;
            let row = tx.query_one_raw(self.statement(self.dialect.row_state, &holes)).await?;
            next = row.map_or(Ok(None), |row| row.try_get("", "replay_of"))?;
        }
        Ok(())
    }
}

fn failed(error: DbErr) -> StoreError {
    store_error("do what an operator asked for", error)
}

/// Tries again a few times where another transaction was in the way.
async fn again<T, F>(operation: impl FnMut() -> F) -> Result<T, OperateError>
where
    F: Future<Output = Result<T, OperateError>>,
{
    let is_conflict =
        |error: &OperateError| matches!(error, OperateError::Store(error) if is_conflict(error));
    super::retry::again(operation, is_conflict).await
}

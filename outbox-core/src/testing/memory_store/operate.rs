//! An operator's verbs and the control table, in memory.

use super::{HistoryEntry, MemoryStore, Tables, expired, finish};
use crate::{
    decide::RowState,
    envelope::MessageId,
    row::{ErrorClass, HandlerState, Operated, OutboxRow, RowId, Status},
    store::{
        BlockedKey, ListRequest, OperateError, OutboxOperator, OutboxStore, Page, Pause, PauseEntry, Replay,
        Shown, Signals, StoreError,
    },
};
use chrono::{DateTime, Utc};

impl OutboxOperator for MemoryStore {
    async fn replay(&self, replay: &Replay<'_>) -> Result<RowId, OperateError> {
        OperateError::check_texts(replay.by, replay.reason)?;
        let now = self.now();
        let mut tables = self.lock();
        let dead = tables.permitted(replay.id, now, RowState::replay)?.clone();
        tables.last_id += 1;
        let id = RowId(tables.last_id);
        let mut envelope = dead.envelope.clone();
        envelope.causation_id = Some(envelope.message_id);
        envelope.correlation_id.get_or_insert_with(|| dead.envelope.message_id.to_string());
        envelope.message_id = MessageId::new();
        let mut row = OutboxRow::pending(id, envelope, now);
        row.replay_of = Some(dead.id);
        row.operated = Some(operated(replay.by, replay.reason));
        if !replay.all_handlers {
            row.progress = dead.progress;
            row.progress.retain(|_, state| *state == HandlerState::Done);
        }
        tables.rows.insert(id, row);
        Ok(id)
    }

    async fn skip(
        &self,
        id: RowId,
        by: &str,
        reason: Option<&str>,
        now: Option<DateTime<Utc>>,
    ) -> Result<(), OperateError> {
        OperateError::check_texts(by, reason)?;
        let now = self.at(now);
        let mut tables = self.lock();
        let row = tables.permitted(id, now, RowState::skip)?;
        if row.status == Status::Pending {
            finish(row, Status::Dead, now);
            row.last_error = Some((ErrorClass::Skipped, crate::decide::SKIPPED.to_owned()));
        }
        row.operated = Some(operated(by, reason));
        row.resolved_at = Some(now);
        let replayed = row.replay_of;
        tables.resolve(replayed, now);
        Ok(())
    }

    async fn retry_now(&self, id: RowId, now: Option<DateTime<Utc>>) -> Result<(), OperateError> {
        let now = self.at(now);
        let mut tables = self.lock();
        let row = tables.permitted(id, now, RowState::retry_now)?;
        row.available_at = row.available_at.min(now);
        Ok(())
    }

    async fn release(&self, id: RowId, now: Option<DateTime<Utc>>) -> Result<(), OperateError> {
        let now = self.at(now);
        let mut tables = self.lock();
        let row = tables.permitted(id, now, RowState::release)?;
        let relay = row.lease.take().map(|lease| lease.claimed_by).unwrap_or_default();
        row.status = Status::Pending;
        let entry = HistoryEntry { id, attempt: row.attempts, relay, failed: expired() };
        tables.record([entry], now);
        Ok(())
    }

    async fn blocked_keys(
        &self,
        limit: u32,
        now: Option<DateTime<Utc>>,
    ) -> Result<Vec<BlockedKey>, StoreError> {
        let now = self.at(now);
        Ok(self.lock().blocked_keys(now, limit as usize))
    }

    async fn signals(&self, now: Option<DateTime<Utc>>) -> Result<Signals, StoreError> {
        let now = self.at(now);
        let control = self.control(Some(now)).await?;
        Ok(self.signals_at(now, control))
    }

    async fn list(&self, request: &ListRequest<'_>) -> Result<Page, StoreError> {
        Ok(self.page(request))
    }

    async fn show(&self, id: RowId, contents: bool) -> Result<Shown, OperateError> {
        self.shown(id, contents)
    }

    async fn pause(&self, pause: &Pause, by: &str, reason: Option<&str>) -> Result<(), OperateError> {
        OperateError::check_texts(by, reason)?;
        OperateError::check_pause(pause)?;
        let (by, reason) = (by.to_owned(), reason.map(str::to_owned));
        let entry = PauseEntry { pause: pause.clone(), by, reason, since: self.now() };
        self.lock().pauses.insert(pause.clone(), entry);
        Ok(())
    }

    async fn resume(&self, pause: &Pause) -> Result<bool, OperateError> {
        Ok(self.lock().pauses.remove(pause).is_some())
    }
}

fn operated(by: &str, reason: Option<&str>) -> Operated {
    Operated { by: by.to_owned(), reason: reason.map(str::to_owned) }
}

impl Tables {
    fn permitted(
        &mut self,
        id: RowId,
        now: DateTime<Utc>,
        rule: fn(RowState) -> Result<(), &'static str>,
    ) -> Result<&mut OutboxRow, OperateError> {
        let replayed = self.rows.values().any(|row| row.replay_of == Some(id));
        let row = self.rows.get_mut(&id).ok_or(OperateError::NotFound(id))?;
        let state = RowState {
            status: row.status,
            resolved: row.resolved_at.is_some(),
            replayed,
            lease_expired: super::is_expired(row, now),
        };
        match rule(state) {
            Ok(()) => Ok(row),
            Err(problem) => Err(OperateError::State { id, status: row.status, problem }),
        }
    }

    /// Resolves a dead letter and those that it replays in turn.
    pub(super) fn resolve(&mut self, mut next: Option<RowId>, now: DateTime<Utc>) {
        while let Some(row) = next.and_then(|id| self.rows.get_mut(&id)) {
            row.resolved_at = Some(now);
            next = row.replay_of;
        }
    }
}

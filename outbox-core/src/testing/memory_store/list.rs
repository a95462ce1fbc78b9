//! Looking at rows, in memory.

use super::{MemoryStore, Tables, delta};
use crate::{
    row::{OutboxRow, RowId, Status},
    store::{
        Contents, ListFilter, ListRequest, ListedAttempt, ListedRow, OperateError, Page, Shown, Standing,
    },
};
use chrono::{DateTime, Utc};

impl MemoryStore {
    pub(super) fn page(&self, request: &ListRequest<'_>) -> Page {
        let now = self.at(request.now);
        let tables = self.lock();
        let is_behind = |id: RowId| match request.after {
            Some(after) if request.newest_first => id < after,
            Some(after) => id > after,
            None => true,
        };
        let fits = |row: &&OutboxRow| is_behind(row.id) && tables.fits(row, request.filter, now);
        let mut found: Vec<_> = tables.rows.values().filter(fits).collect();
        if request.newest_first {
            found.reverse();
        }
        let limit = request.bounded_limit() as usize;
        let is_full = limit > 0 && found.len() >= limit;
        found.truncate(limit);
        let rows: Vec<_> = found.into_iter().map(|row| tables.listed(row, request.contents)).collect();
        Page { next: rows.last().map(|row| row.id).filter(|_| is_full), rows, unreadable: Vec::new() }
    }

    pub(super) fn shown(&self, id: RowId, contents: bool) -> Result<Shown, OperateError> {
        let tables = self.lock();
        let row = tables.rows.get(&id).ok_or(OperateError::NotFound(id))?;
        let entries = tables.history.iter().zip(&tables.failed_at).filter(|(entry, _)| entry.id == id);
        let attempts = entries.map(|(entry, at)| ListedAttempt {
            attempt: entry.attempt.cast_signed(),
            relay: entry.relay.clone(),
            handler: entry.failed.handler.clone(),
            class: entry.failed.class.as_str().to_owned(),
            error: entry.failed.error.clone(),
            failed_at: *at,
        });
        Ok(Shown::new(tables.listed(row, contents), attempts.collect(), tables.chain(id)))
    }
}

impl Tables {
    fn replay_of(&self, id: RowId) -> Option<RowId> {
        self.rows.values().find(|row| row.replay_of == Some(id)).map(|row| row.id)
    }

    fn chain(&self, id: RowId) -> Vec<RowId> {
        let earlier = |id: &RowId| self.rows.get(id)?.replay_of.filter(|id| self.rows.contains_key(id));
        let mut chain: Vec<_> = std::iter::successors(Some(id), earlier).collect();
        chain.reverse();
        chain.extend(std::iter::successors(self.replay_of(id), |id| self.replay_of(*id)));
        chain
    }

    fn fits(&self, row: &OutboxRow, filter: &ListFilter, now: DateTime<Utc>) -> bool {
        let is_unresolved = row.status == Status::Dead && row.resolved_at.is_none();
        let stands = match filter.standing {
            Standing::Any => true,
            Standing::Live => row.finished_at.is_none(),
            Standing::Status(status) => row.status == status,
            Standing::Unresolved => is_unresolved,
            Standing::Replayable => is_unresolved && self.replay_of(row.id).is_none(),
        };
        let envelope = &row.envelope;
        let ago = |age| now.checked_sub_signed(delta(age));
        let is =
            |wanted: Option<&str>, found: Option<&str>| wanted.is_none_or(|wanted| found == Some(wanted));
        stands
            && is(filter.event_type.as_deref(), Some(&envelope.event_type))
            && filter.event_version.is_none_or(|version| envelope.event_version == version)
            && (!filter.failed || row.last_error.is_some())
            && filter.class.is_none_or(|class| row.last_error.as_ref().is_some_and(|(of, _)| *of == class))
            && is(filter.ordering_key.as_deref(), envelope.ordering_key.as_deref())
            && is(filter.aggregate_type.as_deref(), envelope.aggregate_type.as_deref())
            && is(filter.aggregate_id.as_deref(), envelope.aggregate_id.as_deref())
            && filter.message_id.is_none_or(|id| envelope.message_id == id)
            && is(filter.correlation_id.as_deref(), envelope.correlation_id.as_deref())
            && is(filter.claimed_by.as_deref(), row.lease.as_ref().map(|lease| &*lease.claimed_by))
            && filter.older_than.is_none_or(|age| ago(age).is_some_and(|then| row.created_at < then))
            && filter.newer_than.is_none_or(|age| ago(age).is_none_or(|then| row.created_at > then))
    }

    fn listed(&self, row: &OutboxRow, contents: bool) -> ListedRow {
        let envelope = &row.envelope;
        let event = (envelope.event_type.to_string(), i32::from(envelope.event_version));
        let error = row.last_error.as_ref();
        let json = |value| serde_json::to_string(value).unwrap_or_default();
        ListedRow {
            aggregate_type: envelope.aggregate_type.clone(),
            aggregate_id: envelope.aggregate_id.clone(),
            aggregate_version: envelope.aggregate_version,
            ordering_key: envelope.ordering_key.clone(),
            correlation_id: envelope.correlation_id.clone(),
            causation_id: envelope.causation_id,
            status: row.status.as_str().to_owned(),
            attempts: row.attempts.cast_signed(),
            claims: row.claims,
            available_at: row.available_at,
            claimed_by: row.lease.as_ref().map(|lease| lease.claimed_by.clone()),
            lease_expires_at: row.lease.as_ref().map(|lease| lease.expires_at),
            occurred_at: envelope.occurred_at,
            finished_at: row.finished_at,
            resolved_at: row.resolved_at,
            completed_handlers: (!row.progress.is_empty())
                .then(|| serde_json::to_string(&row.progress).unwrap_or_default()),
            error_class: error.map(|(class, _)| class.as_str().to_owned()),
            last_error: error.map(|(_, text)| text.clone()),
            replay_of: row.replay_of,
            replayed_as: self.replay_of(row.id),
            operated_by: row.operated.as_ref().map(|operated| operated.by.clone()),
            reason: row.operated.as_ref().and_then(|operated| operated.reason.clone()),
            contents: contents
                .then(|| Contents { payload: envelope.payload.clone(), headers: json(&envelope.headers) }),
            ..ListedRow::pending(row.id, envelope.message_id, event, row.created_at)
        }
    }
}

//! JSON for programs. Numbers of the database that have 64 bits are texts: many readers make floating-point numbers of
//! JSON's, which are not exact beyond 2^53. Counts are numbers, times are RFC 3339 in UTC.

use chrono::{DateTime, SecondsFormat, Utc};
use outbox_core::{
    RowId,
    row::UnreadableRow,
    store::{BlockedKey, Cause, ListedAttempt, ListedRow, Pause, PauseEntry, Signals},
};
use outbox_seaorm::doctor::Diagnosis;
use serde_json::{Value, json};

pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn maybe_time(at: Option<DateTime<Utc>>) -> Option<String> {
    at.map(time)
}

fn maybe_id(id: Option<RowId>) -> Option<String> {
    id.map(|id| id.to_string())
}

pub(crate) fn row(row: &ListedRow) -> Value {
    let mut value = json!({
        "id": row.id.to_string(),
        "message_id": row.message_id.to_string(),
        "event_type": row.event_type,
        "event_version": row.event_version,
        "aggregate_type": row.aggregate_type,
        "aggregate_id": row.aggregate_id,
        "aggregate_version": row.aggregate_version.map(|version| version.to_string()),
        "ordering_key": row.ordering_key,
        "correlation_id": row.correlation_id,
        "causation_id": row.causation_id.map(|id| id.to_string()),
        "status": row.status,
        "attempts": row.attempts,
        "claims": row.claims.to_string(),
        "available_at": time(row.available_at),
        "claimed_by": row.claimed_by,
        "lease_expires_at": maybe_time(row.lease_expires_at),
        "occurred_at": time(row.occurred_at),
        "created_at": time(row.created_at),
        "finished_at": maybe_time(row.finished_at),
        "resolved_at": maybe_time(row.resolved_at),
        "completed_handlers": row.completed_handlers,
        "error_class": row.error_class,
        "last_error": row.last_error,
        "replay_of": maybe_id(row.replay_of),
        "replayed_as": maybe_id(row.replayed_as),
        "operated_by": row.operated_by,
        "reason": row.reason,
    });
    if let Some(contents) = &row.contents {
        // As texts: read as JSON, a number could change.
        value["payload"] = json!(contents.payload);
        value["headers"] = json!(contents.headers);
    }
    value
}

pub(crate) fn rows(rows: &[ListedRow]) -> Vec<Value> {
    rows.iter().map(row).collect()
}

pub(crate) fn unreadable(rows: &[UnreadableRow]) -> Vec<Value> {
    rows.iter().map(|row| json!({ "id": row.id.to_string(), "error": row.error })).collect()
}

pub(crate) fn page(page: &outbox_core::store::Page) -> Value {
    json!({
        "rows": rows(&page.rows),
        "unreadable": unreadable(&page.unreadable),
        "next": maybe_id(page.next),
    })
}

pub(crate) fn attempt(attempt: &ListedAttempt) -> Value {
    json!({
        "attempt": attempt.attempt,
        "relay": attempt.relay,
        "handler": attempt.handler,
        "class": attempt.class,
        "error": attempt.error,
        "failed_at": time(attempt.failed_at),
    })
}

pub(crate) fn status(signals: &Signals, keys: &[BlockedKey]) -> Value {
    let event = |event: &outbox_core::store::EventSignals| {
        let dead = event.dead.iter().map(|(class, n)| (class.as_str().to_owned(), json!(n)));
        json!({
            "event_type": event.event_type,
            "event_version": event.event_version,
            "is_read": event.is_read,
            "ready": event.ready,
            "ready_since": maybe_time(event.ready_since),
            "blocked": event.blocked,
            "retrying": event.retrying,
            "scheduled": event.scheduled,
            "claimed": event.claimed,
            "expired": event.expired,
            "is_complete": event.is_complete,
            "oldest": maybe_time(event.oldest),
            "dead": dead.collect::<serde_json::Map<_, _>>(),
            "dead_since": maybe_time(event.dead_since),
        })
    };
    let blocked = &signals.blocked;
    json!({
        "at": time(signals.at),
        "lag_seconds": signals.lag().as_secs_f64(),
        "events": signals.events.iter().map(event).collect::<Vec<_>>(),
        "blocked": {
            "dead": blocked.dead,
            "backoff": blocked.backoff,
            "unroutable": blocked.unroutable,
            "followers": blocked.followers,
            "since": maybe_time(blocked.since),
            "is_complete": blocked.is_complete,
            "keys": keys.iter().map(blocked_key).collect::<Vec<_>>(),
        },
        "pauses": signals.pauses.iter().map(pause).collect::<Vec<_>>(),
        "relays": signals.relays.iter().map(|relay| json!({
            "name": relay.name, "handlers": relay.handlers, "proceed": relay.proceed,
        })).collect::<Vec<_>>(),
    })
}

/// The word for a cause.
pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Dead => "dead",
        Cause::Unroutable => "unroutable",
        _ => "backoff",
    }
}

fn blocked_key(key: &BlockedKey) -> Value {
    let until = match key.cause {
        Cause::Backoff { until } => Some(time(until)),
        _ => None,
    };
    json!({
        "key": key.key,
        "head": key.head.to_string(),
        "event": key.logical_name,
        "cause": cause(key.cause),
        "until": until,
        "since": time(key.since),
        "followers": key.followers,
    })
}

fn pause(entry: &PauseEntry) -> Value {
    let mut value = paused(&entry.pause);
    value["by"] = json!(entry.by);
    value["reason"] = json!(entry.reason);
    value["since"] = json!(time(entry.since));
    value
}

pub(crate) fn paused(pause: &Pause) -> Value {
    json!({ "kind": pause.kind(), "name": pause.name() })
}

pub(crate) fn diagnosis(diagnosis: &Diagnosis) -> Value {
    json!({
        "at": time(diagnosis.at),
        "findings": diagnosis.findings.iter().map(|finding| json!({
            "severity": finding.severity.as_str(),
            "code": finding.code,
            "what": finding.what,
            "why": finding.why,
            "mend": finding.mend,
        })).collect::<Vec<_>>(),
        "checked": diagnosis.checked,
        "unasked": diagnosis.unasked.iter().map(|unasked| json!({
            "what": unasked.what,
            "why": unasked.why,
        })).collect::<Vec<_>>(),
    })
}

//! PostgreSQL.
//!
//! Predicates that an index has are written as literals: with a bind the planner cannot use a partial index in a
//! generic plan. `statement_timestamp()` is stable, so an index can be used with it; `now()` would be the start of the
//! transaction.

use super::{Claim, Dialect};
use sea_orm::DbBackend;

pub(super) const DIALECT: Dialect = Dialect {
    backend: DbBackend::Postgres,
    insert_row: "(:message_id, :event_type, :event_version, :aggregate_type, :aggregate_id, :aggregate_version, \
        :ordering_key, :lane, CAST(:payload AS json), CAST(:headers AS json), :correlation_id, :causation_id, :occurred_at)",
    insert_once: "ON CONFLICT (message_id) DO NOTHING",
    lock_keys: "INSERT INTO {keys} (ordering_key) VALUES :keys
        ON CONFLICT (ordering_key) DO UPDATE SET locked_at = statement_timestamp()",
    claim: Claim::One(
        "WITH due AS (
            SELECT id FROM {outbox}
             WHERE finished_at IS NULL AND lane IS NULL
               AND available_at <= :now AND lease_token IS NULL
               AND (event_type, event_version) IN (:routes)
             ORDER BY available_at, id
             LIMIT :limit
               FOR UPDATE SKIP LOCKED)
        UPDATE {outbox} AS o
           SET status = 'claimed', attempts = o.attempts + 1, claims = o.claims + 1, claimed_by = :claimed_by,
               lease_token = :token, lease_expires_at = :now + make_interval(secs => :lease)
          FROM due
         WHERE o.id = due.id
        RETURNING o.id, o.message_id, o.event_type, o.event_version, o.aggregate_type, o.aggregate_id,
            o.aggregate_version, o.ordering_key, CAST(o.payload AS text) AS payload, CAST(o.headers AS text) AS headers,
            o.correlation_id, o.causation_id, o.occurred_at, o.attempts, o.claims, o.available_at,
            CAST(o.completed_handlers AS text) AS completed_handlers",
    ),
    select_expired: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, CAST(payload AS text) AS payload, CAST(headers AS text) AS headers, correlation_id,
            causation_id, occurred_at, attempts, claims, available_at,
            CAST(completed_handlers AS text) AS completed_handlers, claimed_by, isolated
          FROM {outbox}
         WHERE finished_at IS NULL AND lane IS NULL
           AND available_at <= :now AND lease_expires_at <= :now
           AND (event_type, event_version) IN (:routes)
           AND available_at <= COALESCE((
               SELECT available_at FROM {outbox}
                WHERE finished_at IS NULL AND lane IS NULL
                  AND available_at <= :now AND lease_token IS NULL
                  AND (event_type, event_version) IN (:routes)
                ORDER BY available_at, id
                LIMIT 1), :now)
         ORDER BY available_at, id
         LIMIT 1
           FOR UPDATE SKIP LOCKED",
    take_over: "UPDATE {outbox}
           SET attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by, lease_token = :token,
               lease_expires_at = :now + make_interval(secs => :lease), isolated = true
         WHERE id = :id",
    bury: "UPDATE {outbox}
           SET status = 'dead', finished_at = :now, claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL,
               isolated = false, error_class = :class, last_error = :error
         WHERE id = :id",
    record_expiry: "INSERT INTO {attempts} (outbox_id, message_id, attempt, relay, error_class, error, failed_at)
        SELECT id, message_id, attempts, claimed_by, :class, :error, :now FROM {outbox} WHERE id = :id",
    mark_dispatched: "UPDATE {outbox}
           SET status = 'dispatched', finished_at = :now, claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL,
               isolated = false, error_class = NULL, last_error = NULL
         WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token",
    release: "UPDATE {outbox}
           SET status = 'pending', attempts = GREATEST(attempts - 1, 0), claimed_by = NULL, lease_token = NULL,
               lease_expires_at = NULL, isolated = false
         WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token",
    lock_failed: "SELECT id FROM {outbox}
         WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token
         ORDER BY id
           FOR UPDATE",
    record_failed: "INSERT INTO {attempts}
            (outbox_id, message_id, attempt, relay, handler_id, error_class, error, failed_at)
        SELECT o.id, o.message_id, o.attempts, o.claimed_by, f.handler, f.class, f.error, :now
          FROM json_to_recordset(CAST(:failed AS json)) AS f (id bigint, handler text, class text, error text)
          JOIN {outbox} AS o ON o.id = f.id
         WHERE o.lease_token = :token",
    mark_failed: "UPDATE {outbox} AS o
           SET status = m.status,
               available_at = CASE WHEN m.status = 'pending'
                   THEN :now + make_interval(secs => m.delay) ELSE o.available_at END,
               finished_at = CASE WHEN m.status = 'dead' THEN :now END,
               claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL, isolated = false,
               completed_handlers = COALESCE(CAST(m.progress AS json), o.completed_handlers), error_class = COALESCE(m.class, o.error_class),
               last_error = COALESCE(m.error, o.last_error)
          FROM json_to_recordset(CAST(:marks AS json))
            AS m (id bigint, status text, delay double precision, progress text, class text, error text)
         WHERE o.id = m.id AND o.lease_token = :token",
    purge: "WITH old AS (
            SELECT id FROM {outbox}
             WHERE finished_at IS NOT NULL AND finished_at < :now - make_interval(secs => :older_than)
               AND status = 'dispatched'
             ORDER BY finished_at
             LIMIT :limit
               FOR UPDATE SKIP LOCKED)
        DELETE FROM {outbox} AS o USING old WHERE o.id = old.id",
    find: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, CAST(payload AS text) AS payload, CAST(headers AS text) AS headers, correlation_id,
            causation_id, occurred_at, attempts, claims, available_at,
            CAST(completed_handlers AS text) AS completed_handlers, status, claimed_by, lease_token, lease_expires_at,
            isolated, finished_at, error_class, last_error
          FROM {outbox} WHERE message_id = :message_id",
    now: "statement_timestamp()",
};

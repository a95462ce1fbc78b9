//! SQLite.
//!
//! One writer at a time, so there is nothing to skip: `SKIP LOCKED` does not exist, and every transaction here begins
//! IMMEDIATE. Times are text; a `+00:00` is written so that they read as what they are, and arithmetic goes through
//! `strftime`, which is exact to a millisecond.

use super::{Claim, Dialect};
use sea_orm::DbBackend;

pub(super) const DIALECT: Dialect = Dialect {
    backend: DbBackend::Sqlite,
    insert_row: "(:message_id, :event_type, :event_version, :aggregate_type, :aggregate_id, :aggregate_version, \
        :ordering_key, :lane, :payload, :headers, :correlation_id, :causation_id, :occurred_at)",
    insert_once: "ON CONFLICT (message_id) DO NOTHING",
    lock_keys: "INSERT INTO {keys} (ordering_key) VALUES :keys
        ON CONFLICT (ordering_key) DO UPDATE SET locked_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')",
    claim: Claim::One(
        "UPDATE {outbox}
           SET status = 'claimed', attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by,
               lease_token = :token, lease_expires_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', :now, :lease)
         WHERE id IN (
            SELECT id FROM {outbox}
             WHERE finished_at IS NULL AND lane IS NULL
               AND available_at <= :now AND lease_token IS NULL
               AND (event_type, event_version) IN (VALUES :routes)
             ORDER BY available_at, id
             LIMIT :limit)
        RETURNING id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers",
    ),
    select_expired: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, claimed_by, isolated
          FROM {outbox}
         WHERE finished_at IS NULL AND lane IS NULL
           AND available_at <= :now AND lease_expires_at <= :now
           AND (event_type, event_version) IN (VALUES :routes)
           AND available_at <= COALESCE((
               SELECT available_at FROM {outbox}
                WHERE finished_at IS NULL AND lane IS NULL
                  AND available_at <= :now AND lease_token IS NULL
                  AND (event_type, event_version) IN (VALUES :routes)
                ORDER BY available_at, id
                LIMIT 1), :now)
         ORDER BY available_at, id
         LIMIT 1",
    take_over: "UPDATE {outbox}
           SET attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by, lease_token = :token,
               lease_expires_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', :now, :lease), isolated = TRUE
         WHERE id = :id",
    bury: "UPDATE {outbox}
           SET status = 'dead', finished_at = :now, claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL,
               isolated = FALSE, error_class = :class, last_error = :error
         WHERE id = :id",
    record_expiry: "INSERT INTO {attempts} (outbox_id, message_id, attempt, relay, error_class, error, failed_at)
        SELECT id, message_id, attempts, claimed_by, :class, :error, :now FROM {outbox} WHERE id = :id",
    mark_dispatched: "UPDATE {outbox}
           SET status = 'dispatched', finished_at = :now, claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL,
               isolated = FALSE, error_class = NULL, last_error = NULL
         WHERE id IN (SELECT value FROM json_each(:ids)) AND lease_token = :token",
    release: "UPDATE {outbox}
           SET status = 'pending', attempts = max(attempts - 1, 0), claimed_by = NULL, lease_token = NULL,
               lease_expires_at = NULL, isolated = FALSE
         WHERE id IN (SELECT value FROM json_each(:ids)) AND lease_token = :token",
    lock_failed: "SELECT id FROM {outbox} WHERE id IN (SELECT value FROM json_each(:ids)) AND lease_token = :token",
    record_failed: "INSERT INTO {attempts}
            (outbox_id, message_id, attempt, relay, handler_id, error_class, error, failed_at)
        SELECT o.id, o.message_id, o.attempts, o.claimed_by, json_extract(f.value, '$.handler'),
               json_extract(f.value, '$.class'), json_extract(f.value, '$.error'), :now
          FROM json_each(:failed) AS f
          JOIN {outbox} AS o ON o.id = json_extract(f.value, '$.id')
         WHERE o.lease_token = :token",
    mark_failed: "UPDATE {outbox} AS o
           SET status = m.status,
               available_at = CASE WHEN m.status = 'pending'
                   THEN strftime('%Y-%m-%dT%H:%M:%f000+00:00', :now, printf('%+.6f seconds', m.delay))
                   ELSE o.available_at END,
               finished_at = CASE WHEN m.status = 'dead' THEN :now END,
               claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL, isolated = FALSE,
               completed_handlers = COALESCE(m.progress, o.completed_handlers), error_class = COALESCE(m.class, o.error_class),
               last_error = COALESCE(m.error, o.last_error)
          FROM (SELECT json_extract(value, '$.id') AS id, json_extract(value, '$.status') AS status,
                       json_extract(value, '$.delay') AS delay, json_extract(value, '$.progress') AS progress,
                       json_extract(value, '$.class') AS class, json_extract(value, '$.error') AS error
                  FROM json_each(:marks)) AS m
         WHERE o.id = m.id AND o.lease_token = :token",
    purge: "DELETE FROM {outbox}
         WHERE id IN (
            SELECT id FROM {outbox}
             WHERE finished_at IS NOT NULL
               AND finished_at < strftime('%Y-%m-%dT%H:%M:%f000+00:00', :now, :older_than)
               AND status = 'dispatched'
             ORDER BY finished_at
             LIMIT :limit)",
    find: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, status, claimed_by, lease_token, lease_expires_at, isolated, finished_at, error_class,
            last_error
          FROM {outbox} WHERE message_id = :message_id",
    now: "strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')",
};

//! MySQL and MariaDB.
//!
//! `UPDATE … RETURNING` does not exist and `LIMIT` is refused in a subquery, so a claim is two statements in one READ
//! COMMITTED transaction; at the default level it would block the application's inserts. sqlx counts matched rows, not
//! changed ones, so the count of a guarded UPDATE can be trusted.

use super::{Claim, Dialect};
use sea_orm::DbBackend;

pub(super) const DIALECT: Dialect = Dialect {
    backend: DbBackend::MySql,
    insert_row: "(:message_id, :event_type, :event_version, :aggregate_type, :aggregate_id, :aggregate_version, \
        :ordering_key, :lane, :payload, :headers, :correlation_id, :causation_id, :occurred_at)",
    // A failed statement leaves the transaction as it was, so a duplicate is simply caught.
    insert_once: "",
    lock_keys: "INSERT INTO {keys} (ordering_key) VALUES :keys
        ON DUPLICATE KEY UPDATE locked_at = UTC_TIMESTAMP(6)",
    claim: Claim::Two {
        select: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
                ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims,
                available_at, completed_handlers
              FROM {outbox}
             WHERE finished_at IS NULL AND lane IS NULL
               AND available_at <= :now AND lease_token IS NULL
               AND (event_type, event_version) IN (:routes)
             ORDER BY available_at, id
             LIMIT :limit
               FOR UPDATE SKIP LOCKED",
        update: "UPDATE {outbox}
               SET status = 'claimed', attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by,
                   lease_token = :token, lease_expires_at = :now + INTERVAL :lease MICROSECOND
             WHERE id IN (:ids)",
    },
    select_expired: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, claimed_by, isolated
          FROM {outbox}
         WHERE finished_at IS NULL AND lane IS NULL
           AND available_at <= :now AND lease_expires_at <= :now
           AND (event_type, event_version) IN (:routes)
           AND available_at <= COALESCE((
               SELECT first.available_at FROM {outbox} AS first
                WHERE first.finished_at IS NULL AND first.lane IS NULL
                  AND first.available_at <= :now AND first.lease_token IS NULL
                  AND (first.event_type, first.event_version) IN (:routes)
                ORDER BY first.available_at, first.id
                LIMIT 1), :now)
         ORDER BY available_at, id
         LIMIT 1
           FOR UPDATE SKIP LOCKED",
    take_over: "UPDATE {outbox}
           SET attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by, lease_token = :token,
               lease_expires_at = :now + INTERVAL :lease MICROSECOND, isolated = TRUE
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
         WHERE id IN (:ids) AND lease_token = :token",
    release: "UPDATE {outbox}
           SET status = 'pending', attempts = GREATEST(attempts - 1, 0), claimed_by = NULL, lease_token = NULL,
               lease_expires_at = NULL, isolated = FALSE
         WHERE id IN (:ids) AND lease_token = :token",
    lock_failed: "SELECT id FROM {outbox} WHERE id IN (:ids) AND lease_token = :token ORDER BY id FOR UPDATE",
    record_failed: "INSERT INTO {attempts}
            (outbox_id, message_id, attempt, relay, handler_id, error_class, error, failed_at)
        SELECT o.id, o.message_id, o.attempts, o.claimed_by, f.handler, f.class, f.error, :now
          FROM JSON_TABLE(:failed, '$[*]' COLUMNS (
                   id BIGINT PATH '$.id', handler VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.handler', class VARCHAR(32) PATH '$.class',
                   error VARCHAR(2000) CHARACTER SET utf8mb4 PATH '$.error')) AS f
          JOIN {outbox} AS o ON o.id = f.id
         WHERE o.lease_token = :token",
    // MySQL assigns from left to right: available_at is set while status still is the old one, and from `m` only.
    mark_failed: "UPDATE {outbox} AS o
          JOIN JSON_TABLE(:marks, '$[*]' COLUMNS (
                   id BIGINT PATH '$.id', status VARCHAR(10) PATH '$.status', delay DOUBLE PATH '$.delay',
                   progress LONGTEXT CHARACTER SET utf8mb4 PATH '$.progress', class VARCHAR(32) PATH '$.class',
                   error VARCHAR(2000) CHARACTER SET utf8mb4 PATH '$.error')) AS m ON m.id = o.id
           SET o.available_at = CASE WHEN m.status = 'pending'
                   THEN :now + INTERVAL CAST(m.delay * 1000000 AS SIGNED) MICROSECOND ELSE o.available_at END,
               o.finished_at = CASE WHEN m.status = 'dead' THEN :now END,
               o.status = m.status,
               o.claimed_by = NULL, o.lease_token = NULL, o.lease_expires_at = NULL, o.isolated = FALSE,
               o.completed_handlers = COALESCE(m.progress, o.completed_handlers), o.error_class = COALESCE(m.class, o.error_class),
               o.last_error = COALESCE(m.error, o.last_error)
         WHERE o.lease_token = :token",
    purge: "DELETE FROM {outbox}
         WHERE finished_at < :now - INTERVAL :older_than MICROSECOND AND status = 'dispatched'
         ORDER BY finished_at
         LIMIT :limit",
    find: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, status, claimed_by, lease_token, lease_expires_at, isolated, finished_at, error_class,
            last_error
          FROM {outbox} WHERE message_id = :message_id",
    now: "UTC_TIMESTAMP(6)",
};

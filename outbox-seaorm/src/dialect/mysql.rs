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
    claim: Claim::Several {
        routes: "SELECT r.n AS n,
                (SELECT f.available_at FROM {outbox} AS f
                  WHERE f.finished_at IS NULL AND f.lane IS NULL
                    AND f.event_type = r.event_type AND f.event_version = r.event_version
                    AND f.available_at <= :now AND f.lease_token IS NULL
                  ORDER BY f.lane, f.available_at, f.id
                  LIMIT 1) AS head
              FROM JSON_TABLE(:routes, '$[*]' COLUMNS (
                   n INT PATH '$.n', event_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.event_type',
                   event_version INT PATH '$.event_version')) AS r
            HAVING head IS NOT NULL
             ORDER BY head, n",
        select: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, replay_of
              FROM {outbox}
             WHERE finished_at IS NULL AND lane IS NULL
               AND event_type = :event_type AND event_version = :event_version
               AND available_at <= :now AND lease_token IS NULL
             ORDER BY lane, available_at, id
             LIMIT :limit
               FOR UPDATE SKIP LOCKED",
    },
    claim_ids: "UPDATE {outbox}
           SET status = 'claimed', attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by,
               lease_token = :token, lease_expires_at = :now + INTERVAL :lease MICROSECOND
         WHERE id IN (:ids)",
    walk_keys: "SELECT page.ordering_key AS k
          FROM (SELECT ordering_key FROM {outbox}
                 WHERE finished_at IS NULL AND ordering_key > :after
                 ORDER BY ordering_key, id
                 LIMIT :limit) AS page
         GROUP BY page.ordering_key
         ORDER BY page.ordering_key",
    heads: "SELECT picked.k, h.id, h.lane, h.event_type, h.event_version, h.lease_token IS NULL AND h.available_at <= :now AS ready,
            COALESCE(h.lease_expires_at <= :now, FALSE) AS expired,
            h.lease_token IS NULL AND h.available_at > :now AS backoff, h.available_at, h.created_at
          FROM (SELECT r.n AS n, r.k AS k,
                       (SELECT o.id FROM {outbox} AS o
                         WHERE o.finished_at IS NULL AND o.ordering_key = r.k AND o.replay_of IS NULL
                         ORDER BY o.id LIMIT 1) AS id
                  FROM JSON_TABLE(:keys, '$[*]' COLUMNS (
                   n INT PATH '$.n', k VARCHAR(400) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.k')) AS r) AS picked
          JOIN {outbox} AS h ON h.id = picked.id
         WHERE NOT EXISTS (
               SELECT 1 FROM {outbox} AS d
                WHERE d.ordering_key = picked.k
                  AND d.unresolved = 1
                  AND d.event_type NOT IN (SELECT p.value FROM JSON_TABLE(:proceed, '$[*]' COLUMNS (value VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS p))
         ORDER BY picked.n",
    dead_heads: "SELECT ordering_key AS k, id, event_type, event_version, finished_at AS since
          FROM {outbox}
         WHERE unresolved = 1 AND ordering_key IS NOT NULL
           AND replay_of IS NULL
           AND event_type NOT IN (SELECT p.value FROM JSON_TABLE(:proceed, '$[*]' COLUMNS (value VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS p)
         ORDER BY ordering_key, id
         LIMIT :limit",
    followers: "SELECT COUNT(*) AS n FROM (
            SELECT id FROM {outbox}
             WHERE finished_at IS NULL AND ordering_key = :key AND replay_of IS NULL AND id > :id
             LIMIT :limit) AS waiting",
    live_replays: "SELECT h.ordering_key AS k, h.id, h.lane, h.event_type, h.event_version, h.lease_token IS NULL AND h.available_at <= :now AS ready,
            COALESCE(h.lease_expires_at <= :now, FALSE) AS expired
          FROM {outbox} AS h
         WHERE h.finished_at IS NULL AND h.replay_of IS NOT NULL AND h.ordering_key IS NOT NULL
         ORDER BY h.id",
    lock_lanes: "SELECT lane FROM {lanes} WHERE lane IN (:ids) ORDER BY lane
           FOR UPDATE SKIP LOCKED",
    runs: "WITH RECURSIVE walk (k, id, n) AS (
            SELECT r.k, (SELECT o.id FROM {outbox} AS o
                          WHERE o.finished_at IS NULL AND o.ordering_key = r.k AND o.replay_of IS NULL
                          ORDER BY o.id LIMIT 1), 1
              FROM JSON_TABLE(:keys, '$[*]' COLUMNS (
                   n INT PATH '$.n', k VARCHAR(400) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.k')) AS r
             WHERE NOT EXISTS (
               SELECT 1 FROM {outbox} AS d
                WHERE d.ordering_key = r.k
                  AND d.unresolved = 1
                  AND d.event_type NOT IN (SELECT p.value FROM JSON_TABLE(:proceed, '$[*]' COLUMNS (value VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS p))
            UNION ALL
            SELECT walk.k, (SELECT o.id FROM {outbox} AS o
                             WHERE o.finished_at IS NULL AND o.ordering_key = walk.k AND o.replay_of IS NULL
                               AND o.id > walk.id
                             ORDER BY o.id LIMIT 1), walk.n + 1
              FROM walk
             WHERE walk.id IS NOT NULL AND walk.n < :each)
        SELECT id FROM walk WHERE id IS NOT NULL",
    lock_runs: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, replay_of,
            status, resolved_at IS NOT NULL AS resolved, status = 'pending' AND available_at <= :now AS ready
          FROM {outbox}
         WHERE id IN (:ids)
         ORDER BY id
           FOR UPDATE",
    find_expired: "SELECT candidate.id
          FROM (SELECT (
               SELECT x.id FROM {outbox} AS x
                WHERE x.finished_at IS NULL AND x.lane IS NULL
                  AND x.event_type = r.event_type AND x.event_version = r.event_version
                  AND x.available_at <= :now AND x.lease_expires_at <= :now
               AND x.id NOT IN (:held)
                  AND x.available_at <= COALESCE((
                      SELECT f.available_at FROM {outbox} AS f
                       WHERE f.finished_at IS NULL AND f.lane IS NULL
                         AND f.event_type = r.event_type AND f.event_version = r.event_version
                         AND f.available_at <= :now AND f.lease_token IS NULL
                       ORDER BY f.lane, f.available_at, f.id
                       LIMIT 1), :now)
                ORDER BY x.lane, x.available_at, x.id
                LIMIT 1) AS id
              FROM JSON_TABLE(:routes, '$[*]' COLUMNS (
                   n INT PATH '$.n', event_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.event_type',
                   event_version INT PATH '$.event_version')) AS r) AS picked
          JOIN {outbox} AS candidate ON candidate.id = picked.id
         ORDER BY candidate.available_at, candidate.id
         LIMIT 1",
    lock_expired: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, replay_of, claimed_by, isolated
          FROM {outbox}
         WHERE id = :id AND lease_expires_at <= :now
           FOR UPDATE SKIP LOCKED",
    take_over: "UPDATE {outbox}
           SET attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by, lease_token = :token,
               lease_expires_at = :now + INTERVAL :lease MICROSECOND, isolated = :alone
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
    mark_deleted: "DELETE FROM {outbox} WHERE id IN (:ids) AND lease_token = :token",
    renew: "UPDATE {outbox} SET lease_expires_at = :now + INTERVAL :lease MICROSECOND WHERE id IN (:ids) AND lease_token = :token",
    held: "SELECT id FROM {outbox} WHERE id IN (:ids) AND lease_token = :token",
    lock_held: "SELECT id FROM {outbox} WHERE id IN (:ids) AND lease_token = :token ORDER BY id FOR UPDATE SKIP LOCKED",
    resolve: "UPDATE {outbox} SET resolved_at = :now WHERE id = :id AND status = 'dead' AND resolved_at IS NULL",
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
                   id BIGINT PATH '$.id', status VARCHAR(10) PATH '$.status', given_back INT PATH '$.given_back', delay DOUBLE PATH '$.delay',
                   progress LONGTEXT CHARACTER SET utf8mb4 PATH '$.progress', class VARCHAR(32) PATH '$.class',
                   error VARCHAR(2000) CHARACTER SET utf8mb4 PATH '$.error')) AS m ON m.id = o.id
           SET o.available_at = CASE WHEN m.status = 'pending'
                   THEN :now + INTERVAL CAST(m.delay * 1000000 AS SIGNED) MICROSECOND ELSE o.available_at END,
               o.finished_at = CASE WHEN m.status = 'dead' THEN :now END,
               o.status = m.status, o.attempts = GREATEST(o.attempts - m.given_back, 0),
               o.claimed_by = NULL, o.lease_token = NULL, o.lease_expires_at = NULL, o.isolated = FALSE,
               o.completed_handlers = CASE WHEN m.progress IS NULL THEN o.completed_handlers
                   ELSE JSON_MERGE_PATCH(m.progress, COALESCE(o.completed_handlers, '{}')) END,
               o.error_class = COALESCE(m.class, o.error_class),
               o.last_error = COALESCE(m.error, o.last_error)
         WHERE o.lease_token = :token",
    finish_handler: "UPDATE {outbox}
           SET completed_handlers = JSON_MERGE_PATCH(COALESCE(completed_handlers, '{}'), :done)
         WHERE id = :id AND lease_token = :token
           AND JSON_EXTRACT(COALESCE(completed_handlers, '{}'), CONCAT('$.\"', :handler, '\"')) IS NULL",
    own_progress: "SELECT completed_handlers FROM {outbox} WHERE id = :id AND lease_token = :token",
    lock_purge: "SELECT name FROM {control} WHERE kind = 'lock' AND name = 'purge' FOR UPDATE SKIP LOCKED",
    purge_dispatched: "DELETE FROM {outbox}
         WHERE finished_at < :now - INTERVAL :older_than MICROSECOND AND status = 'dispatched'
         ORDER BY finished_at
         LIMIT :limit",
    purge_resolved: "DELETE FROM {outbox}
         WHERE resolved_at < :now - INTERVAL :older_than MICROSECOND AND status = 'dead'
         ORDER BY resolved_at
         LIMIT :limit",
    purge_history: "DELETE FROM {attempts}
         WHERE failed_at < :now - INTERVAL :older_than MICROSECOND AND NOT EXISTS (
                SELECT 1 FROM {outbox} AS o
                 WHERE o.id = {attempts}.outbox_id
                   AND (o.finished_at IS NULL OR (o.status = 'dead' AND o.resolved_at IS NULL)))
         ORDER BY failed_at
         LIMIT :limit",
    record: "INSERT INTO {inbox} (consumer, message_id) VALUES :rows",
    purge_inbox: "DELETE FROM {inbox}
         WHERE consumed_at < :now - INTERVAL :older_than MICROSECOND
         ORDER BY consumed_at
         LIMIT :limit",
    find: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, payload, headers, correlation_id, causation_id, occurred_at, attempts, claims, available_at,
            completed_handlers, replay_of, status, claimed_by, lease_token, lease_expires_at, isolated, created_at, finished_at,
            error_class, last_error, replayed_by, replay_reason, resolved_at
          FROM {outbox} WHERE message_id = :message_id",
    announce: "INSERT INTO {control} (kind, name, value, updated_at, expires_at)
        VALUES ('relay', :relay, :value, :now, :now + INTERVAL :lasts MICROSECOND)
        ON DUPLICATE KEY UPDATE value = VALUES(value), updated_at = VALUES(updated_at), expires_at = VALUES(expires_at)",
    forget: "DELETE FROM {control} WHERE kind = 'relay' AND expires_at <= :now",
    withdraw: "DELETE FROM {control} WHERE kind = 'relay' AND name = :relay",
    control: "SELECT kind, name, value, set_by, reason, updated_at FROM {control}
         WHERE kind IN ('pause-all', 'pause-event', 'pause-handler') OR (kind = 'relay' AND expires_at > :now)
         ORDER BY kind, name",
    pause: "INSERT INTO {control} (kind, name, set_by, reason, updated_at) VALUES (:kind, :name, :by, :reason, :now)
        ON DUPLICATE KEY UPDATE set_by = VALUES(set_by), reason = VALUES(reason), updated_at = VALUES(updated_at)",
    resume: "DELETE FROM {control} WHERE kind = :kind AND name = :name",
    lock_row: "SELECT id FROM {outbox} WHERE id = :id FOR UPDATE",
    row_state: "SELECT o.status, o.resolved_at IS NOT NULL AS resolved,
            COALESCE(o.lease_expires_at <= :now, FALSE) AS lease_expired,
            EXISTS (SELECT 1 FROM {outbox} AS r WHERE r.replay_of = o.id) AS replayed, o.replay_of, o.message_id,
            o.completed_handlers
          FROM {outbox} AS o WHERE o.id = :id",
    replay: "INSERT INTO {outbox} (message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, lane, payload, headers, correlation_id, causation_id, occurred_at, completed_handlers,
            replay_of, replayed_by, replay_reason)
        SELECT :message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version, ordering_key, lane,
               payload, headers, COALESCE(correlation_id, :conversation), message_id, occurred_at, :progress, id, :by, :reason
          FROM {outbox} WHERE id = :id",
    row_id: "SELECT id FROM {outbox} WHERE message_id = :message_id",
    skip_dead: "UPDATE {outbox} SET resolved_at = :now, replayed_by = :by, replay_reason = :reason WHERE id = :id AND status = 'dead'",
    skip_pending: "UPDATE {outbox}
           SET status = 'dead', finished_at = :now, resolved_at = :now, error_class = :class, last_error = :error,
               replayed_by = :by, replay_reason = :reason
         WHERE id = :id AND status = 'pending'",
    retry_now: "UPDATE {outbox} SET available_at = CASE WHEN available_at > :now THEN :now ELSE available_at END
         WHERE id = :id AND status = 'pending'",
    release_expired: "UPDATE {outbox}
           SET status = 'pending', claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL, isolated = FALSE
         WHERE id = :id AND lease_expires_at <= :now",
    notify: None,
    plain_plans: None,
    isolation: Some("SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')"),
    operate: super::operate::mysql::OPERATE,
    doctor: super::doctor::mysql::DOCTOR,
    isolation_column: 1,
    now: "UTC_TIMESTAMP(6)",
};

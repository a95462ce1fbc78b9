//! MySQL and MariaDB.

use super::Operate;

// Indexes are named where old statistics would make a scan of the whole table look cheap.
pub(crate) const OPERATE: Operate = Operate {
    walk_events: "SELECT page.event_type, page.event_version
          FROM (SELECT event_type, event_version FROM {outbox}
                 WHERE finished_at IS NULL
                   AND (event_type > :event_type OR (event_type = :event_type AND event_version > :event_version))
                 ORDER BY event_type, event_version
                 LIMIT :limit) AS page
         GROUP BY page.event_type, page.event_version
         ORDER BY page.event_type, page.event_version",
    events: "WITH blocked (k) AS (SELECT b.k FROM JSON_TABLE(:blocked, '$[*]' COLUMNS (
                   k VARCHAR(400) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS b)
        :events",
    event: "SELECT CAST(:n AS SIGNED) AS n,
               COUNT(CASE WHEN waits = 'ready' THEN 1 END) AS ready, COUNT(CASE WHEN waits = 'blocked' THEN 1 END) AS blocked,
               COUNT(CASE WHEN waits = 'retrying' THEN 1 END) AS retrying, COUNT(CASE WHEN waits = 'scheduled' THEN 1 END) AS scheduled,
               COUNT(CASE WHEN waits = 'claimed' THEN 1 END) AS claimed, COUNT(CASE WHEN waits = 'expired' THEN 1 END) AS expired,
               MIN(created_at) AS oldest,
               (SELECT u.available_at FROM {outbox} AS u FORCE INDEX ({name:outbox_live})
                 WHERE u.finished_at IS NULL AND u.event_type = :event_type AND u.event_version = :event_version
                   AND u.lane IS NULL AND u.lease_token IS NULL
                 ORDER BY u.lane, u.available_at, u.id LIMIT 1) AS unordered,
               (SELECT MIN(f.available_at)
                  FROM (SELECT (SELECT o.available_at FROM {outbox} AS o
                                 WHERE o.finished_at IS NULL AND o.event_type = :event_type AND o.event_version = :event_version
                                   AND o.lane = l.lane AND o.lease_token IS NULL
                                   AND (o.replay_of IS NOT NULL OR o.ordering_key NOT IN (SELECT k FROM blocked))
                                 ORDER BY o.lane, o.available_at, o.id LIMIT 1) AS available_at
                          FROM {lanes} AS l) AS f) AS ordered
          FROM (SELECT created_at, CASE
                    WHEN lease_expires_at <= :now THEN 'expired'
                    WHEN lease_token IS NOT NULL THEN 'claimed'
                    WHEN available_at > :now AND error_class IS NOT NULL THEN 'retrying'
                    WHEN available_at > :now THEN 'scheduled'
                    WHEN replay_of IS NULL AND ordering_key IN (SELECT k FROM blocked) THEN 'blocked'
                    ELSE 'ready' END AS waits
                  FROM {outbox} FORCE INDEX ({name:outbox_live})
                 WHERE finished_at IS NULL AND event_type = :event_type AND event_version = :event_version
                 LIMIT :limit) AS counted",
    dead_letters: "SELECT event_type, event_version, error_class, COUNT(*) AS n, MIN(finished_at) AS since
          FROM (SELECT d.event_type, d.event_version, d.error_class, d.finished_at
                  FROM {outbox} AS d
                 WHERE d.unresolved = 1
                   AND NOT EXISTS (SELECT 1 FROM {outbox} AS r WHERE r.replay_of = d.id)
                 LIMIT :limit) AS dead
         GROUP BY event_type, event_version, error_class",
    all_followers: "SELECT CAST(COALESCE(SUM((
               SELECT COUNT(*) FROM {outbox} AS o
                WHERE o.finished_at IS NULL AND o.ordering_key = b.k AND o.replay_of IS NULL AND o.id > b.id)), 0) AS SIGNED) AS n
          FROM JSON_TABLE(:keys, '$[*]' COLUMNS (
                   k VARCHAR(400) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.k', id BIGINT PATH '$.id')) AS b",
    list: "SELECT o.id, o.message_id, o.event_type, o.event_version, o.aggregate_type, o.aggregate_id, o.aggregate_version,
            o.ordering_key, o.correlation_id, o.causation_id, o.status, o.attempts, o.claims, o.available_at, o.claimed_by,
            o.lease_expires_at, o.occurred_at, o.created_at, o.finished_at, o.resolved_at,
            o.completed_handlers AS completed_handlers, o.error_class, o.last_error,
            o.replay_of, o.replayed_by, o.replay_reason,
            (SELECT r.id FROM {outbox} AS r WHERE r.replay_of = o.id) AS replayed_as:contents
          FROM {outbox} AS o
         WHERE :conditions
         ORDER BY :order
         LIMIT :limit",
    contents: ", o.payload, o.headers",
    is_unresolved: "o.unresolved = 1",
};

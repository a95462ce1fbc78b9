//! PostgreSQL.
//!
//! Within a key rows are read by `ordering_key >= k AND ordering_key <= k … ORDER BY ordering_key, id`. With `=` the
//! planner may take the primary key for the order, and read all finished rows on its way to the first live one.
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
        "WITH route AS (
            SELECT r.event_type, r.event_version
              FROM json_to_recordset(CAST(:routes AS json)) AS r (n integer, event_type text, event_version integer)
             CROSS JOIN LATERAL (
                SELECT available_at FROM {outbox}
                 WHERE finished_at IS NULL AND lane IS NULL
                   AND event_type = r.event_type AND event_version = r.event_version
                   AND available_at <= :now AND lease_token IS NULL
                 ORDER BY lane, available_at, id
                 LIMIT 1) AS head
             ORDER BY head.available_at, r.n),
        due AS (
            SELECT o.id
              FROM route
             CROSS JOIN LATERAL (
                SELECT id FROM {outbox}
                 WHERE finished_at IS NULL AND lane IS NULL
                   AND event_type = route.event_type AND event_version = route.event_version
                   AND available_at <= :now AND lease_token IS NULL
                 ORDER BY lane, available_at, id
                 LIMIT :limit
                   FOR UPDATE SKIP LOCKED) AS o
             LIMIT :limit)
        UPDATE {outbox} AS o
           SET status = 'claimed', attempts = o.attempts + 1, claims = o.claims + 1, claimed_by = :claimed_by,
               lease_token = :token, lease_expires_at = :now + make_interval(secs => :lease)
         WHERE o.id = ANY(ARRAY(SELECT id FROM due))
        RETURNING o.id, o.message_id, o.event_type, o.event_version, o.aggregate_type, o.aggregate_id,
            o.aggregate_version, o.ordering_key, CAST(o.payload AS text) AS payload, CAST(o.headers AS text) AS headers,
            o.correlation_id, o.causation_id, o.occurred_at, o.attempts, o.claims, o.available_at,
            CAST(o.completed_handlers AS text) AS completed_handlers, o.replay_of",
    ),
    claim_ids: "UPDATE {outbox}
           SET status = 'claimed', attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by,
               lease_token = :token, lease_expires_at = :now + make_interval(secs => :lease)
         WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[]))",
    walk_keys: "WITH RECURSIVE walk (k, n) AS (
            (SELECT ordering_key, 1 FROM {outbox}
              WHERE finished_at IS NULL AND ordering_key > :after
              ORDER BY ordering_key LIMIT 1)
            UNION ALL
            SELECT next.ordering_key, walk.n + 1
              FROM walk
             CROSS JOIN LATERAL (
                SELECT ordering_key FROM {outbox}
                 WHERE finished_at IS NULL AND ordering_key > walk.k
                 ORDER BY ordering_key LIMIT 1) AS next
             WHERE walk.n < :limit)
        SELECT k FROM walk",
    heads: "SELECT r.k, h.id, h.lane, h.event_type, h.event_version, h.lease_token IS NULL AND h.available_at <= :now AS ready,
            COALESCE(h.lease_expires_at <= :now, FALSE) AS expired,
            h.lease_token IS NULL AND h.available_at > :now AS backoff, h.available_at, h.created_at
          FROM json_to_recordset(CAST(:keys AS json)) AS r (n integer, k text)
         CROSS JOIN LATERAL (
            SELECT id, lane, event_type, event_version, lease_token, available_at, lease_expires_at, created_at
              FROM {outbox}
             WHERE finished_at IS NULL AND ordering_key >= r.k AND ordering_key <= r.k AND replay_of IS NULL
             ORDER BY ordering_key, id LIMIT 1) AS h
         WHERE NOT EXISTS (
               SELECT 1 FROM {outbox} AS d
                WHERE d.ordering_key = r.k
                  AND d.finished_at IS NOT NULL AND d.error_class IS NOT NULL AND d.resolved_at IS NULL
                  AND d.event_type NOT IN (SELECT p.value FROM json_array_elements_text(CAST(:proceed AS json)) AS p (value)))
         ORDER BY r.n",
    dead_heads: "SELECT ordering_key AS k, id, event_type, event_version, finished_at AS since
          FROM {outbox}
         WHERE finished_at IS NOT NULL AND error_class IS NOT NULL AND resolved_at IS NULL AND ordering_key IS NOT NULL
           AND replay_of IS NULL
           AND event_type NOT IN (SELECT p.value FROM json_array_elements_text(CAST(:proceed AS json)) AS p (value))
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
    lock_lanes: "SELECT lane FROM {lanes} WHERE lane = ANY(CAST(string_to_array(:ids, ',') AS smallint[])) ORDER BY lane
           FOR UPDATE SKIP LOCKED",
    runs: "SELECT o.id
          FROM json_to_recordset(CAST(:keys AS json)) AS r (n integer, k text)
         CROSS JOIN LATERAL (
            SELECT id FROM {outbox}
             WHERE finished_at IS NULL AND ordering_key >= r.k AND ordering_key <= r.k AND replay_of IS NULL
             ORDER BY ordering_key, id LIMIT :each) AS o
         WHERE NOT EXISTS (
               SELECT 1 FROM {outbox} AS d
                WHERE d.ordering_key = r.k
                  AND d.finished_at IS NOT NULL AND d.error_class IS NOT NULL AND d.resolved_at IS NULL
                  AND d.event_type NOT IN (SELECT p.value FROM json_array_elements_text(CAST(:proceed AS json)) AS p (value)))",
    lock_runs: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, CAST(payload AS text) AS payload, CAST(headers AS text) AS headers, correlation_id,
            causation_id, occurred_at, attempts, claims, available_at,
            CAST(completed_handlers AS text) AS completed_handlers, replay_of,
            status, resolved_at IS NOT NULL AS resolved, status = 'pending' AND available_at <= :now AS ready
          FROM {outbox}
         WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[]))
         ORDER BY id
           FOR UPDATE",
    // Each event is looked up on its own; a join by id would read the whole table where statistics are missing.
    find_expired: "SELECT x.id
          FROM json_to_recordset(CAST(:routes AS json)) AS r (n integer, event_type text, event_version integer)
         CROSS JOIN LATERAL (
            SELECT x.id, x.available_at FROM {outbox} AS x
             WHERE x.finished_at IS NULL AND x.lane IS NULL
               AND x.event_type = r.event_type AND x.event_version = r.event_version
               AND x.available_at <= :now AND x.lease_expires_at <= :now
               AND x.id <> ALL(CAST(string_to_array(:held, ',') AS bigint[]))
               AND x.available_at <= COALESCE((
                   SELECT f.available_at FROM {outbox} AS f
                    WHERE f.finished_at IS NULL AND f.lane IS NULL
                      AND f.event_type = r.event_type AND f.event_version = r.event_version
                      AND f.available_at <= :now AND f.lease_token IS NULL
                    ORDER BY f.lane, f.available_at, f.id
                    LIMIT 1), :now)
             ORDER BY x.lane, x.available_at, x.id
             LIMIT 1) AS x
         ORDER BY x.available_at, x.id
         LIMIT 1",
    lock_expired: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, CAST(payload AS text) AS payload, CAST(headers AS text) AS headers, correlation_id,
            causation_id, occurred_at, attempts, claims, available_at,
            CAST(completed_handlers AS text) AS completed_handlers, replay_of, claimed_by, isolated
          FROM {outbox}
         WHERE id = :id AND lease_expires_at <= :now
           FOR UPDATE SKIP LOCKED",
    take_over: "UPDATE {outbox}
           SET attempts = attempts + 1, claims = claims + 1, claimed_by = :claimed_by, lease_token = :token,
               lease_expires_at = :now + make_interval(secs => :lease), isolated = :alone
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
    mark_deleted: "DELETE FROM {outbox} WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token",
    renew: "UPDATE {outbox} SET lease_expires_at = :now + make_interval(secs => :lease) WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token",
    held: "SELECT id FROM {outbox} WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token",
    lock_held: "SELECT id FROM {outbox} WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token ORDER BY id FOR UPDATE SKIP LOCKED",
    resolve: "UPDATE {outbox} SET resolved_at = :now WHERE id = :id AND status = 'dead' AND resolved_at IS NULL",
    lock_failed: "SELECT id FROM {outbox}
         WHERE id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND lease_token = :token
         ORDER BY id
           FOR UPDATE",
    // The ids twice: without statistics a join with the JSON alone reads the whole table.
    record_failed: "INSERT INTO {attempts}
            (outbox_id, message_id, attempt, relay, handler_id, error_class, error, failed_at)
        SELECT o.id, o.message_id, o.attempts, o.claimed_by, f.handler, f.class, f.error, :now
          FROM json_to_recordset(CAST(:failed AS json)) AS f (id bigint, handler text, class text, error text)
          JOIN {outbox} AS o ON o.id = f.id
         WHERE o.id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND o.lease_token = :token",
    mark_failed: "UPDATE {outbox} AS o
           SET status = m.status, attempts = GREATEST(o.attempts - m.given_back, 0),
               available_at = CASE WHEN m.status = 'pending'
                   THEN :now + make_interval(secs => m.delay) ELSE o.available_at END,
               finished_at = CASE WHEN m.status = 'dead' THEN :now END,
               claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL, isolated = false,
               completed_handlers = CASE WHEN m.progress IS NULL THEN o.completed_handlers
                   ELSE CAST(CAST(m.progress AS jsonb) || COALESCE(CAST(o.completed_handlers AS jsonb), '{}') AS json) END,
               error_class = COALESCE(m.class, o.error_class),
               last_error = COALESCE(m.error, o.last_error)
          FROM json_to_recordset(CAST(:marks AS json))
            AS m (id bigint, status text, given_back integer, delay double precision, progress text, class text, error text)
         WHERE o.id = m.id AND o.id = ANY(CAST(string_to_array(:ids, ',') AS bigint[])) AND o.lease_token = :token",
    finish_handler: "UPDATE {outbox}
           SET completed_handlers = CAST(COALESCE(CAST(completed_handlers AS jsonb), '{}') || CAST(:done AS jsonb) AS json)
         WHERE id = :id AND lease_token = :token AND CAST(completed_handlers AS jsonb) -> CAST(:handler AS text) IS NULL",
    own_progress: "SELECT CAST(completed_handlers AS text) AS completed_handlers FROM {outbox} WHERE id = :id AND lease_token = :token",
    lock_purge: "SELECT name FROM {control} WHERE kind = 'lock' AND name = 'purge' FOR UPDATE SKIP LOCKED",
    purge_dispatched: "DELETE FROM {outbox}
         WHERE id = ANY(ARRAY(
            SELECT id FROM {outbox}
             WHERE finished_at IS NOT NULL AND finished_at < :now - make_interval(secs => :older_than) AND status = 'dispatched'
             ORDER BY finished_at
             LIMIT :limit))",
    purge_resolved: "DELETE FROM {outbox}
         WHERE id = ANY(ARRAY(
            SELECT id FROM {outbox}
             WHERE resolved_at IS NOT NULL AND resolved_at < :now - make_interval(secs => :older_than) AND status = 'dead'
             ORDER BY resolved_at
             LIMIT :limit))",
    purge_history: "DELETE FROM {attempts}
         WHERE id = ANY(ARRAY(
            SELECT id FROM {attempts}
             WHERE failed_at < :now - make_interval(secs => :older_than) AND NOT EXISTS (
                SELECT 1 FROM {outbox} AS o
                 WHERE o.id = {attempts}.outbox_id
                   AND (o.finished_at IS NULL OR (o.status = 'dead' AND o.resolved_at IS NULL)))
             ORDER BY failed_at
             LIMIT :limit))",
    record: "INSERT INTO {inbox} (consumer, message_id) VALUES :rows
        ON CONFLICT (consumer, message_id) DO NOTHING
        RETURNING message_id",
    purge_inbox: "WITH old AS (
            SELECT consumer, message_id FROM {inbox}
             WHERE consumed_at < :now - make_interval(secs => :older_than)
             ORDER BY consumed_at
             LIMIT :limit
               FOR UPDATE SKIP LOCKED)
        DELETE FROM {inbox} AS i USING old WHERE i.consumer = old.consumer AND i.message_id = old.message_id",
    find: "SELECT id, message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, CAST(payload AS text) AS payload, CAST(headers AS text) AS headers, correlation_id,
            causation_id, occurred_at, attempts, claims, available_at,
            CAST(completed_handlers AS text) AS completed_handlers, replay_of, status, claimed_by, lease_token, lease_expires_at, isolated, created_at, finished_at,
            error_class, last_error, replayed_by, replay_reason, resolved_at
          FROM {outbox} WHERE message_id = :message_id",
    announce: "INSERT INTO {control} (kind, name, value, updated_at, expires_at)
        VALUES ('relay', :relay, CAST(:value AS json), :now, :now + make_interval(secs => :lasts))
        ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at",
    forget: "DELETE FROM {control} WHERE kind = 'relay' AND expires_at <= :now",
    withdraw: "DELETE FROM {control} WHERE kind = 'relay' AND name = :relay",
    control: "SELECT kind, name, CAST(value AS text) AS value, set_by, reason, updated_at FROM {control}
         WHERE kind IN ('pause-all', 'pause-event', 'pause-handler') OR (kind = 'relay' AND expires_at > :now)
         ORDER BY kind, name",
    pause: "INSERT INTO {control} (kind, name, set_by, reason, updated_at) VALUES (:kind, :name, :by, :reason, :now)
        ON CONFLICT (kind, name) DO UPDATE SET set_by = excluded.set_by, reason = excluded.reason, updated_at = excluded.updated_at",
    resume: "DELETE FROM {control} WHERE kind = :kind AND name = :name",
    lock_row: "SELECT id FROM {outbox} WHERE id = :id FOR UPDATE",
    row_state: "SELECT o.status, o.resolved_at IS NOT NULL AS resolved,
            COALESCE(o.lease_expires_at <= :now, false) AS lease_expired,
            EXISTS (SELECT 1 FROM {outbox} AS r WHERE r.replay_of = o.id) AS replayed, o.replay_of, o.message_id,
            CAST(o.completed_handlers AS text) AS completed_handlers
          FROM {outbox} AS o WHERE o.id = :id",
    replay: "INSERT INTO {outbox} (message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version,
            ordering_key, lane, payload, headers, correlation_id, causation_id, occurred_at, completed_handlers,
            replay_of, replayed_by, replay_reason)
        SELECT :message_id, event_type, event_version, aggregate_type, aggregate_id, aggregate_version, ordering_key, lane,
               payload, headers, COALESCE(correlation_id, :conversation), message_id, occurred_at, CAST(:progress AS json), id, :by, :reason
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
           SET status = 'pending', claimed_by = NULL, lease_token = NULL, lease_expires_at = NULL, isolated = false
         WHERE id = :id AND lease_expires_at <= :now",
    notify: Some("SELECT pg_notify(:channel, '')"),
    plain_plans: Some("SELECT set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true)"),
    isolation: Some("SHOW transaction_isolation"),
    operate: super::operate::postgres::OPERATE,
    doctor: super::doctor::postgres::DOCTOR,
    isolation_column: 0,
    now: "statement_timestamp()",
};

-- The rows. Times are text of one fixed form in UTC, so that they sort as they are.
-- AUTOINCREMENT: without it SQLite gives the id of a deleted row to the next one.
CREATE TABLE IF NOT EXISTS {outbox} (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id         BLOB    NOT NULL UNIQUE,
    event_type         TEXT    NOT NULL,
    event_version      INTEGER NOT NULL CHECK (event_version BETWEEN 1 AND 65535),
    aggregate_type     TEXT,
    aggregate_id       TEXT,
    aggregate_version  BIGINT,
    ordering_key       TEXT,
    lane               INTEGER CHECK (lane BETWEEN 0 AND 255),
    payload            TEXT    NOT NULL,
    headers            TEXT    NOT NULL DEFAULT '{}',
    correlation_id     TEXT,
    causation_id       BLOB,
    status             TEXT    NOT NULL DEFAULT 'pending',
    attempts           INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    claims             BIGINT  NOT NULL DEFAULT 0 CHECK (claims >= 0),
    available_at       TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    claimed_by         TEXT,
    lease_token        BLOB,
    lease_expires_at   TEXT,
    isolated           BOOLEAN NOT NULL DEFAULT FALSE,
    occurred_at        TEXT    NOT NULL,
    created_at         TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    finished_at        TEXT,
    completed_handlers TEXT,
    last_error         TEXT    CHECK (length(last_error) <= 2000),
    error_class        TEXT,
    replay_of          BIGINT,
    replayed_by        TEXT,
    replay_reason      TEXT,
    resolved_at        TEXT,
    CONSTRAINT {name:outbox_status} CHECK (status IN ('pending', 'claimed', 'dispatched', 'dead')),
    CONSTRAINT {name:outbox_aggregate} CHECK ((aggregate_type IS NULL) = (aggregate_id IS NULL)),
    CONSTRAINT {name:outbox_lane} CHECK ((lane IS NULL) = (ordering_key IS NULL)),
    CONSTRAINT {name:outbox_lease} CHECK (
        (status = 'claimed') = (lease_token IS NOT NULL)
        AND (lease_token IS NULL) = (lease_expires_at IS NULL)
        AND (lease_token IS NULL) = (claimed_by IS NULL)
        AND (NOT isolated OR lease_token IS NOT NULL)),
    CONSTRAINT {name:outbox_finished} CHECK ((status IN ('dispatched', 'dead')) = (finished_at IS NOT NULL)),
    CONSTRAINT {name:outbox_error} CHECK (
        (status <> 'dead' OR error_class IS NOT NULL) AND (status <> 'dispatched' OR error_class IS NULL)),
    CONSTRAINT {name:outbox_resolved} CHECK (resolved_at IS NULL OR status = 'dead'),
    CONSTRAINT {name:outbox_replay} CHECK (replay_of IS NULL OR replayed_by IS NOT NULL)
);
-- The claim of unordered rows.
CREATE INDEX IF NOT EXISTS {index:outbox_live} ON {bare:outbox} (event_type, event_version, lane, available_at, id)
    WHERE finished_at IS NULL;
-- The claim of ordered rows: from key to key, and along each key.
CREATE INDEX IF NOT EXISTS {index:outbox_live_key} ON {bare:outbox} (ordering_key, id)
    WHERE finished_at IS NULL AND ordering_key IS NOT NULL;
-- Replays do not queue behind their key.
CREATE INDEX IF NOT EXISTS {index:outbox_live_replay} ON {bare:outbox} (id)
    WHERE finished_at IS NULL AND replay_of IS NOT NULL;
-- Dead letters that nobody has resolved.
CREATE INDEX IF NOT EXISTS {index:outbox_unresolved} ON {bare:outbox} (ordering_key, id)
    WHERE finished_at IS NOT NULL AND error_class IS NOT NULL AND resolved_at IS NULL;
-- The purge.
CREATE INDEX IF NOT EXISTS {index:outbox_finished_at} ON {bare:outbox} (finished_at)
    WHERE finished_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS {index:outbox_resolved_at} ON {bare:outbox} (resolved_at)
    WHERE resolved_at IS NOT NULL;
-- A dead row is replayed once.
CREATE UNIQUE INDEX IF NOT EXISTS {index:outbox_replay_of} ON {bare:outbox} (replay_of)
    WHERE replay_of IS NOT NULL;

-- One row for each failed attempt. No foreign key: the history outlives its row.
CREATE TABLE IF NOT EXISTS {attempts} (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    outbox_id   BIGINT  NOT NULL,
    message_id  BLOB    NOT NULL,
    attempt     INTEGER NOT NULL,
    relay       TEXT    NOT NULL,
    handler_id  TEXT,
    error_class TEXT    NOT NULL,
    error       TEXT    NOT NULL CHECK (length(error) <= 2000),
    failed_at   TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);
CREATE INDEX IF NOT EXISTS {index:outbox_attempts_row} ON {bare:attempts} (outbox_id, id);
CREATE INDEX IF NOT EXISTS {index:outbox_attempts_failed_at} ON {bare:attempts} (failed_at);

-- The rows. A claim must be a HOT update (no index entry written): no index below names, in its keys, its predicate or
-- an INCLUDE, a column that a claim changes (status, attempts, claims, claimed_by, lease_*, isolated). Half of each
-- page is left free for the second version of its rows.
CREATE TABLE IF NOT EXISTS {outbox} (
    id                 bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    message_id         uuid         NOT NULL CONSTRAINT {name:outbox_message_id} UNIQUE,
    event_type         text         COLLATE "C" NOT NULL,
    event_version      integer      NOT NULL CHECK (event_version BETWEEN 1 AND 65535),
    aggregate_type     text,
    aggregate_id       text,
    aggregate_version  bigint,
    ordering_key       text         COLLATE "C",
    lane               smallint     CHECK (lane BETWEEN 0 AND 255),
    payload            json         NOT NULL,
    headers            json         NOT NULL DEFAULT '{}',
    correlation_id     text,
    causation_id       uuid,
    status             text         NOT NULL DEFAULT 'pending',
    attempts           integer      NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    claims             bigint       NOT NULL DEFAULT 0 CHECK (claims >= 0),
    available_at       timestamptz  NOT NULL DEFAULT statement_timestamp(),
    claimed_by         text,
    lease_token        uuid,
    lease_expires_at   timestamptz,
    isolated           boolean      NOT NULL DEFAULT false,
    occurred_at        timestamptz  NOT NULL,
    created_at         timestamptz  NOT NULL DEFAULT statement_timestamp(),
    finished_at        timestamptz,
    completed_handlers json,
    last_error         text         CHECK (char_length(last_error) <= 2000),
    error_class        text,
    replay_of          bigint,
    replayed_by        text,
    replay_reason      text,
    resolved_at        timestamptz,
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
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 50000
);
-- The claim of unordered rows (lane IS NULL), and what is late. By event, so that rows which a relay cannot read cost its
-- claims nothing. Only live rows are in it, so history costs nothing either.
CREATE INDEX IF NOT EXISTS {name:outbox_live} ON {outbox} (event_type, event_version, lane, available_at, id)
    WHERE finished_at IS NULL;
-- The claim of ordered rows: from key to key, and along each key.
CREATE INDEX IF NOT EXISTS {name:outbox_live_key} ON {outbox} (ordering_key, id)
    WHERE finished_at IS NULL AND ordering_key IS NOT NULL;
-- Replays do not queue behind their key.
CREATE INDEX IF NOT EXISTS {name:outbox_live_replay} ON {outbox} (id)
    WHERE finished_at IS NULL AND replay_of IS NOT NULL;
-- Dead letters that nobody has resolved, and the keys that they block. Said without `status`: a finished row with an
-- error is dead.
CREATE INDEX IF NOT EXISTS {name:outbox_unresolved} ON {outbox} (ordering_key, id)
    WHERE finished_at IS NOT NULL AND error_class IS NOT NULL AND resolved_at IS NULL;
-- The purge.
CREATE INDEX IF NOT EXISTS {name:outbox_finished_at} ON {outbox} (finished_at)
    WHERE finished_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS {name:outbox_resolved_at} ON {outbox} (resolved_at)
    WHERE resolved_at IS NOT NULL;
-- A dead row is replayed once; when its replay dies, that one is replayed.
CREATE UNIQUE INDEX IF NOT EXISTS {name:outbox_replay_of} ON {outbox} (replay_of)
    WHERE replay_of IS NOT NULL;

-- One row for each failed attempt. No foreign key: the history outlives its row.
CREATE TABLE IF NOT EXISTS {attempts} (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    outbox_id   bigint       NOT NULL,
    message_id  uuid         NOT NULL,
    attempt     integer      NOT NULL,
    relay       text         NOT NULL,
    handler_id  text,
    error_class text         NOT NULL,
    error       text         NOT NULL CHECK (char_length(error) <= 2000),
    failed_at   timestamptz  NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX IF NOT EXISTS {name:outbox_attempts_row} ON {attempts} (outbox_id, id);
CREATE INDEX IF NOT EXISTS {name:outbox_attempts_failed_at} ON {attempts} (failed_at);

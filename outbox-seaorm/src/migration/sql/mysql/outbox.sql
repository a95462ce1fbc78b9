-- The rows. There are no partial indexes here: finished_at leads each index of live rows, and history lies behind it.
CREATE TABLE IF NOT EXISTS {outbox} (
    id                 BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    message_id         BINARY(16)   NOT NULL,
    event_type         VARCHAR(200) NOT NULL,
    event_version      INT          NOT NULL CHECK (event_version BETWEEN 1 AND 65535),
    aggregate_type     VARCHAR(100),
    aggregate_id       VARCHAR(255),
    aggregate_version  BIGINT,
    ordering_key       VARCHAR(400),
    lane               SMALLINT     CHECK (lane BETWEEN 0 AND 255),
    payload            LONGTEXT     NOT NULL,
    headers            LONGTEXT     NOT NULL,
    correlation_id     VARCHAR(200),
    causation_id       BINARY(16),
    status             VARCHAR(10)  NOT NULL DEFAULT 'pending',
    attempts           INT          NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    claims             BIGINT       NOT NULL DEFAULT 0 CHECK (claims >= 0),
    available_at       DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    claimed_by         VARCHAR(200),
    lease_token        BINARY(16),
    lease_expires_at   DATETIME(6),
    isolated           BOOLEAN      NOT NULL DEFAULT FALSE,
    occurred_at        DATETIME(6)  NOT NULL,
    created_at         DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    finished_at        DATETIME(6),
    completed_handlers LONGTEXT,
    last_error         VARCHAR(2000),
    error_class        VARCHAR(32),
    replay_of          BIGINT,
    replayed_by        VARCHAR(200),
    replay_reason      VARCHAR(2000),
    resolved_at        DATETIME(6),
    unresolved         BOOLEAN      AS (CASE WHEN finished_at IS NOT NULL AND error_class IS NOT NULL AND resolved_at IS NULL THEN 1 END) STORED,
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
    CONSTRAINT {name:outbox_replay} CHECK (replay_of IS NULL OR replayed_by IS NOT NULL),
    UNIQUE KEY {name:outbox_message_id} (message_id),
    -- The claim of unordered rows.
    KEY {name:outbox_live} (finished_at, event_type, event_version, lane, available_at, id),
    -- The claim of ordered rows: from key to key, and along each key.
    KEY {name:outbox_live_key} (finished_at, ordering_key, id),
    -- Dead letters that nobody has resolved.
    KEY {name:outbox_unresolved} (unresolved, ordering_key, id),
    KEY {name:outbox_resolved_at} (resolved_at),
    -- A dead row is replayed once.
    UNIQUE KEY {name:outbox_replay_of} (replay_of)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row for each failed attempt. No foreign key: the history outlives its row.
CREATE TABLE IF NOT EXISTS {attempts} (
    id          BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    outbox_id   BIGINT        NOT NULL,
    message_id  BINARY(16)    NOT NULL,
    attempt     INT           NOT NULL,
    relay       VARCHAR(200)  NOT NULL,
    handler_id  VARCHAR(200),
    error_class VARCHAR(32)   NOT NULL,
    error       VARCHAR(2000) NOT NULL,
    failed_at   DATETIME(6)   NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    KEY {name:outbox_attempts_row} (outbox_id, id),
    KEY {name:outbox_attempts_failed_at} (failed_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

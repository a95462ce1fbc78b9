-- Writers of one ordering key lock its row here, so that ids are given out in the order of their commits.
CREATE TABLE IF NOT EXISTS {keys} (
    ordering_key text         NOT NULL PRIMARY KEY,
    locked_at    timestamptz  NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX IF NOT EXISTS {name:outbox_keys_locked_at} ON {keys} (locked_at);

-- Relays that claim ordered rows lock the lanes that they read.
CREATE TABLE IF NOT EXISTS {lanes} (
    lane smallint NOT NULL PRIMARY KEY CHECK (lane BETWEEN 0 AND 255)
);
INSERT INTO {lanes} (lane) SELECT lane FROM generate_series(0, 255) AS lane ON CONFLICT (lane) DO NOTHING;

-- Pauses, the handlers of each live relay, and the lock of the purge.
CREATE TABLE IF NOT EXISTS {control} (
    kind        text         NOT NULL,
    name        text         NOT NULL,
    value       json,
    set_by      text,
    reason      text,
    updated_at  timestamptz  NOT NULL DEFAULT statement_timestamp(),
    expires_at  timestamptz,
    PRIMARY KEY (kind, name)
);
INSERT INTO {control} (kind, name) VALUES ('lock', 'purge') ON CONFLICT (kind, name) DO NOTHING;

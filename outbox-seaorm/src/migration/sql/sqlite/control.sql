-- Pauses, the handlers of each live relay, and the lock of the purge.
CREATE TABLE IF NOT EXISTS {control} (
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT,
    set_by      TEXT,
    reason      TEXT,
    updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    expires_at  TEXT,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO {control} (kind, name) VALUES ('lock', 'purge') ON CONFLICT (kind, name) DO NOTHING;

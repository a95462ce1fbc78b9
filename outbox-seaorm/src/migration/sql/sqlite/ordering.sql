-- Writers of one ordering key note it here; SQLite has one writer at a time anyway.
CREATE TABLE IF NOT EXISTS {keys} (
    ordering_key TEXT NOT NULL PRIMARY KEY,
    locked_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {index:outbox_keys_locked_at} ON {bare:keys} (locked_at);

CREATE TABLE IF NOT EXISTS {lanes} (
    lane INTEGER NOT NULL PRIMARY KEY CHECK (lane BETWEEN 0 AND 255)
);
WITH RECURSIVE counted (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < 255)
INSERT INTO {lanes} (lane) SELECT n FROM counted WHERE true ON CONFLICT (lane) DO NOTHING;

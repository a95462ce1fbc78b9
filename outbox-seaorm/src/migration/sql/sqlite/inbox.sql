-- What a consumer has handled already.
CREATE TABLE IF NOT EXISTS {inbox} (
    consumer     TEXT NOT NULL,
    message_id   BLOB NOT NULL,
    consumed_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    PRIMARY KEY (consumer, message_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {index:inbox_consumed_at} ON {bare:inbox} (consumed_at);

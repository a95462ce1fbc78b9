-- What a consumer has handled already.
CREATE TABLE IF NOT EXISTS {inbox} (
    consumer     text         NOT NULL,
    message_id   uuid         NOT NULL,
    consumed_at  timestamptz  NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (consumer, message_id)
);
CREATE INDEX IF NOT EXISTS {name:inbox_consumed_at} ON {inbox} (consumed_at);

-- What a consumer has handled already.
CREATE TABLE IF NOT EXISTS {inbox} (
    consumer     VARCHAR(200) NOT NULL,
    message_id   BINARY(16)   NOT NULL,
    consumed_at  DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (consumer, message_id),
    KEY {name:inbox_consumed_at} (consumed_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Pauses, the handlers of each live relay, and the lock of the purge.
CREATE TABLE IF NOT EXISTS {control} (
    kind        VARCHAR(32)   NOT NULL,
    name        VARCHAR(200)  NOT NULL,
    value       LONGTEXT,
    set_by      VARCHAR(200),
    reason      VARCHAR(2000),
    updated_at  DATETIME(6)   NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    expires_at  DATETIME(6),
    PRIMARY KEY (kind, name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO {control} (kind, name) VALUES ('lock', 'purge');

-- Writers of one ordering key lock its row here, so that ids are given out in the order of their commits.
CREATE TABLE IF NOT EXISTS {keys} (
    ordering_key VARCHAR(400) NOT NULL PRIMARY KEY,
    locked_at    DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    KEY {name:outbox_keys_locked_at} (locked_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Relays that claim ordered rows lock the lanes that they read.
CREATE TABLE IF NOT EXISTS {lanes} (
    lane SMALLINT NOT NULL PRIMARY KEY CHECK (lane BETWEEN 0 AND 255)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT INTO {lanes} (lane)
    WITH RECURSIVE counted (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < 255)
    SELECT n FROM counted
    ON DUPLICATE KEY UPDATE lane = VALUES(lane);

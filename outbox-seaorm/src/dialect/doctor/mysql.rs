//! MySQL and MariaDB.

use super::Doctor;

pub(crate) const DOCTOR: Doctor = Doctor {
    indexes: "SELECT CAST(s.INDEX_NAME AS CHAR) AS name, CAST('' AS CHAR) AS definition,
            CAST(GROUP_CONCAT(s.COLUMN_NAME ORDER BY s.SEQ_IN_INDEX SEPARATOR ', ') AS CHAR) AS columns, TRUE AS is_valid
          FROM information_schema.STATISTICS AS s
         WHERE s.TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND s.TABLE_NAME = :bare
         GROUP BY s.INDEX_NAME",
    create_online: ("", ""),
    rebuild: "",
    strict_levels: &["SERIALIZABLE"],
    transactions: Some(
        "SELECT CAST(t.trx_mysql_thread_id AS SIGNED) AS session, CAST('' AS CHAR) AS who, CAST(t.trx_state AS CHAR) AS state,
                CAST(TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) AS SIGNED) AS age
           FROM information_schema.INNODB_TRX AS t
          WHERE t.trx_mysql_thread_id <> CONNECTION_ID() AND TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) >= :seconds
          ORDER BY t.trx_started
          LIMIT 20",
    ),
    end_session: "KILL {}",
    sees_all: None,
    prepared: None,
    slots: None,
    versions: None,
    index_size: None,
    free: Some("SELECT CAST(COALESCE(t.DATA_LENGTH + t.INDEX_LENGTH, 0) AS SIGNED) AS used,
            CAST(COALESCE(t.DATA_FREE, 0) AS SIGNED) AS free
          FROM information_schema.TABLES AS t
         WHERE t.TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND t.TABLE_NAME = :bare"),
    pages: None,
    shrink: "OPTIMIZE TABLE ",
    touch: "",
    journal_mode: None,
    checkpoint: None,
    relax: "SET GLOBAL transaction_isolation = 'READ-COMMITTED'",
    end_orphan: "`XA RECOVER`, then `XA COMMIT` or `XA ROLLBACK` of what it lists",
    end_prepared: "",
    drop_slot: "",
    clean: "",
    drop_online: "",
    truncate_log: "",
};

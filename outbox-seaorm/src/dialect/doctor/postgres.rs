//! PostgreSQL.

use super::Doctor;
use sea_orm::{DatabaseConnection, DbErr};

pub(crate) const DOCTOR: Doctor = Doctor {
    indexes: "SELECT CAST(c.relname AS text) AS name, i.indisvalid AND i.indisready AS is_valid,
            pg_get_indexdef(i.indexrelid) AS definition,
            (SELECT string_agg(CAST(a.attname AS text), ', ' ORDER BY k.n)
               FROM unnest(CAST(i.indkey AS smallint[])) WITH ORDINALITY AS k (attnum, n)
               JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
              WHERE k.n <= i.indnkeyatts) AS columns
          FROM pg_index AS i
          JOIN pg_class AS c ON c.oid = i.indexrelid
         WHERE i.indrelid = to_regclass(:table)",
    create_online: (" INDEX IF NOT EXISTS ", " INDEX CONCURRENTLY IF NOT EXISTS "),
    rebuild: "REINDEX INDEX CONCURRENTLY ",
    strict_levels: &["REPEATABLE READ", "SERIALIZABLE"],
    transactions: Some(
        "SELECT CAST(pid AS bigint) AS session, CAST(usename AS text) AS who, state,
                CAST(EXTRACT(EPOCH FROM statement_timestamp() - xact_start) AS bigint) AS age
           FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
            AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
            AND xact_start <= statement_timestamp() - make_interval(secs => CAST(:seconds AS bigint))
          ORDER BY xact_start
          LIMIT 20",
    ),
    end_session: "SELECT pg_terminate_backend({})",
    sees_all: Some("SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all"),
    prepared: Some(
        "SELECT gid AS name, CAST(EXTRACT(EPOCH FROM statement_timestamp() - prepared) AS bigint) AS age
           FROM pg_prepared_xacts
          WHERE database = current_database()
            AND prepared <= statement_timestamp() - make_interval(secs => CAST(:seconds AS bigint))
          ORDER BY prepared
          LIMIT 20",
    ),
    slots: Some(
        "SELECT CAST(slot_name AS text) AS name, (xmin IS NOT NULL OR catalog_xmin IS NOT NULL) AS holds_rows
           FROM pg_replication_slots
          WHERE NOT active AND (restart_lsn IS NOT NULL OR xmin IS NOT NULL OR catalog_xmin IS NOT NULL)
            AND (database IS NULL OR database = current_database())
          ORDER BY slot_name
          LIMIT 20",
    ),
    versions: Some(
        "SELECT n_live_tup AS live, n_dead_tup AS dead, GREATEST(last_vacuum, last_autovacuum) AS cleaned
           FROM pg_stat_user_tables WHERE relid = to_regclass(:table)",
    ),
    index_size: Some(
        "SELECT pg_relation_size(c.oid) AS bytes, CAST(GREATEST(c.reltuples, 0) AS bigint) AS n
           FROM pg_class AS c WHERE c.oid = to_regclass(:index)",
    ),
    free: None,
    pages: None,
    shrink: "",
    touch: "",
    journal_mode: None,
    checkpoint: None,
    relax: "ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'read committed'",
    end_orphan: "",
    end_prepared: "`COMMIT PREPARED {}` or `ROLLBACK PREPARED {}`",
    drop_slot: "SELECT pg_drop_replication_slot({})",
    clean: "VACUUM (VERBOSE, ANALYZE) ",
    drop_online: "DROP INDEX CONCURRENTLY ",
    truncate_log: "",
};

/// The server's processes that answer some questions asked one after the other on one connection.
#[cfg(feature = "postgres")]
pub(crate) async fn backend_pids(db: &DatabaseConnection) -> Result<Vec<i32>, DbErr> {
    use sea_orm::{
        DatabaseConnectionType, RuntimeErr,
        sqlx::{Row, raw_sql},
    };
    if !matches!(db.inner, DatabaseConnectionType::SqlxPostgresPoolConnection(_)) {
        return Ok(Vec::new());
    }
    let failed = |error| DbErr::Query(RuntimeErr::SqlxError(std::sync::Arc::new(error)));
    let mut connection = db.get_postgres_connection_pool().acquire().await.map_err(failed)?;
    let mut pids = Vec::new();
    for _ in 0..8 {
        // Not prepared: that is what breaks first where each statement goes to another process.
        let row = raw_sql("SELECT pg_backend_pid()").fetch_one(&mut *connection).await.map_err(failed)?;
        pids.push(row.try_get(0).map_err(failed)?);
    }
    Ok(pids)
}

#[cfg(not(feature = "postgres"))]
pub(crate) async fn backend_pids(_: &DatabaseConnection) -> Result<Vec<i32>, DbErr> {
    Ok(Vec::new())
}

//! SQLite.

use super::Doctor;

pub(crate) const DOCTOR: Doctor = Doctor {
    indexes: "SELECT l.name AS name, TRUE AS is_valid, '' AS definition,
            (SELECT group_concat(i.name, ', ') FROM pragma_index_info(l.name, COALESCE(:schema, 'main')) AS i) AS columns
          FROM pragma_index_list(:bare, COALESCE(:schema, 'main')) AS l",
    create_online: ("", ""),
    rebuild: "",
    strict_levels: &[],
    transactions: None,
    end_session: "",
    sees_all: None,
    prepared: None,
    slots: None,
    versions: None,
    index_size: None,
    free: None,
    pages: Some(["PRAGMA {schema}page_size", "PRAGMA {schema}page_count", "PRAGMA {schema}freelist_count"]),
    shrink: "VACUUM",
    touch: "PRAGMA {schema}schema_version",
    journal_mode: Some("PRAGMA {schema}journal_mode"),
    checkpoint: Some("PRAGMA {schema}wal_checkpoint(PASSIVE)"),
    relax: "",
    end_orphan: "",
    end_prepared: "",
    drop_slot: "",
    clean: "",
    drop_online: "",
    truncate_log: "PRAGMA wal_checkpoint(TRUNCATE)",
};

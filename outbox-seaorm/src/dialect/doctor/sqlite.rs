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
    free: "SELECT (p.page_count - f.freelist_count) * s.page_size AS used, f.freelist_count * s.page_size AS free
          FROM pragma_page_count(COALESCE(:schema, 'main')) AS p, pragma_freelist_count(COALESCE(:schema, 'main')) AS f,
               pragma_page_size(COALESCE(:schema, 'main')) AS s",
    shrink: "VACUUM",
    journal_mode: Some("PRAGMA {schema}journal_mode"),
    checkpoint: Some("PRAGMA {schema}wal_checkpoint(PASSIVE)"),
};

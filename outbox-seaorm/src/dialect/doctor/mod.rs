//! What a doctor asks, in the SQL of each backend. What a backend cannot be asked is `None`.

pub(super) mod mysql;
pub(super) mod postgres;
pub(super) mod sqlite;

pub(crate) use postgres::backend_pids;

/// The questions to one backend. `:table` is a table as SQL names it, `:bare` without its schema, `:schema` the schema.
#[derive(Debug)]
pub(crate) struct Doctor {
    /// The indexes of a table: name, columns, whether it is valid.
    pub(crate) indexes: &'static str,
    /// What stands in the statement that creates an index, and what instead, so that writers go on meanwhile.
    pub(crate) create_online: (&'static str, &'static str),
    /// What makes an index whole again; the index's name follows.
    pub(crate) rebuild: &'static str,
    /// Isolation levels under which saves fail or wait more than they have to.
    pub(crate) strict_levels: &'static [&'static str],
    /// Other transactions that are open for longer than `:seconds`: their session, who, state, age. Those of sessions that
    /// are gone have session 0.
    pub(crate) transactions: Option<&'static str>,
    /// What ends a session; its number stands for `{}`.
    pub(crate) end_session: &'static str,
    /// Whether the login sees the transactions of others, where it can be asked.
    pub(crate) sees_all: Option<&'static str>,
    /// Prepared transactions that are older than `:seconds`: name, age.
    pub(crate) prepared: Option<&'static str>,
    /// Replication slots that nobody reads.
    pub(crate) slots: Option<&'static str>,
    /// Live and dead versions of a table's rows, and when they were cleaned up last.
    pub(crate) versions: Option<&'static str>,
    /// Bytes and rows of the index of live rows.
    pub(crate) index_size: Option<&'static str>,
    /// Bytes that a table uses, and bytes that it holds free.
    pub(crate) free: Option<&'static str>,
    /// The same of a file: bytes of a page, pages, free ones among them.
    pub(crate) pages: Option<[&'static str; 3]>,
    /// What gives free space back.
    pub(crate) shrink: &'static str,
    /// Makes SQLite look into its file.
    pub(crate) touch: &'static str,
    /// SQLite's journal mode.
    pub(crate) journal_mode: Option<&'static str>,
    /// Pages of SQLite's log, and how many of them could be moved into the file.
    pub(crate) checkpoint: Option<&'static str>,
    /// What makes READ COMMITTED the default of the login.
    pub(crate) relax: &'static str,
    /// What ends a transaction whose session is gone.
    pub(crate) end_orphan: &'static str,
    /// What ends a prepared transaction; its name stands for `{}`.
    pub(crate) end_prepared: &'static str,
    /// What drops a replication slot; its name stands for `{}`.
    pub(crate) drop_slot: &'static str,
    /// What cleans a table up; it follows.
    pub(crate) clean: &'static str,
    /// What drops an index while writers go on; it follows.
    pub(crate) drop_online: &'static str,
    /// What empties SQLite's log.
    pub(crate) truncate_log: &'static str,
}

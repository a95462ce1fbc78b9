//! The SQL of each backend, complete. Nothing outside this folder and `migration/` holds text that only one of them
//! understands; what differs in procedure is asked as a question about the backend.

mod doctor;
mod fault;
#[cfg(feature = "postgres")]
mod listener;
mod mysql;
mod operate;
mod postgres;
mod sqlite;

pub(crate) use doctor::{Doctor, backend_pids};
pub(crate) use fault::{Fault, fault, has_no_savepoint, undoes_transaction};
#[cfg(feature = "postgres")]
pub(crate) use listener::Listener;
use operate::Operate;

use crate::sql::{Hole, Holes};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, IsolationLevel, SqliteTransactionMode,
    TransactionOptions, TransactionTrait, Value,
};
use std::time::Duration;

/// The statements of one backend. See [`crate::sql::statement`] for the holes.
#[derive(Debug)]
pub(crate) struct Dialect {
    pub(crate) backend: DbBackend,
    /// One row of the INSERT of new messages.
    pub(crate) insert_row: &'static str,
    /// What makes that INSERT pass over a message whose id is there already.
    pub(crate) insert_once: &'static str,
    /// Locks the keys of ordered rows.
    pub(crate) lock_keys: &'static str,
    /// The claim of due rows.
    pub(crate) claim: Claim,
    /// Claims locked rows by their ids.
    pub(crate) claim_ids: &'static str,
    /// The next ordering keys that have live rows, in order; perhaps fewer than there are, but not none.
    pub(crate) walk_keys: &'static str,
    /// The first live row of each of some keys that no dead letter blocks.
    pub(crate) heads: &'static str,
    /// Dead letters that hold up their key.
    pub(crate) dead_heads: &'static str,
    /// Counts the live rows of a key behind one of its rows.
    pub(crate) followers: &'static str,
    /// Live replays of ordered dead letters.
    pub(crate) live_replays: &'static str,
    /// Locks those of some lanes that are free.
    pub(crate) lock_lanes: &'static str,
    /// The ids of the first live rows of each of some keys that no dead letter blocks.
    pub(crate) runs: &'static str,
    /// Locks rows and returns them as they are then, whatever their state, as a claim does and with their standing.
    pub(crate) lock_runs: &'static str,
    /// The row that has waited longest with an expired lease.
    pub(crate) find_expired: &'static str,
    /// Locks it, unless somebody else has. Returns it as a claim does, with `claimed_by` and `isolated`.
    pub(crate) lock_expired: &'static str,
    /// Claims a row that `lock_expired` locked.
    pub(crate) take_over: &'static str,
    /// Makes a row that `lock_expired` locked a dead letter.
    pub(crate) bury: &'static str,
    /// Writes the history of a locked row whose lease has expired.
    pub(crate) record_expiry: &'static str,
    /// Marks rows dispatched, under their token.
    pub(crate) mark_dispatched: &'static str,
    /// Deletes rows that are dispatched, under their token.
    pub(crate) mark_deleted: &'static str,
    /// Makes leases last longer, under their token.
    pub(crate) renew: &'static str,
    /// Those of some rows that are held under a token.
    pub(crate) held: &'static str,
    /// Locks them, but for those that somebody has locked.
    pub(crate) lock_held: &'static str,
    /// Resolves a dead letter.
    pub(crate) resolve: &'static str,
    /// Gives rows back with their attempt, under their token.
    pub(crate) release: &'static str,
    /// Locks rows under their token, so that history and mark meet the same rows.
    pub(crate) lock_failed: &'static str,
    /// Writes the history of failed rows, under their token.
    pub(crate) record_failed: &'static str,
    /// Marks rows for retry or dead, under their token.
    pub(crate) mark_failed: &'static str,
    /// Adds a handler to the progress of a row under its token, unless the handler is in it.
    pub(crate) finish_handler: &'static str,
    /// The progress of a row under its token.
    pub(crate) own_progress: &'static str,
    /// Locks the purge, unless somebody else has.
    pub(crate) lock_purge: &'static str,
    /// Deletes dispatched rows.
    pub(crate) purge_dispatched: &'static str,
    /// Deletes resolved dead letters.
    pub(crate) purge_resolved: &'static str,
    /// Deletes the history of rows that are finished for good.
    pub(crate) purge_history: &'static str,
    /// Records messages of a consumer in the inbox and returns those that are new; on MySQL one, which fails when it is
    /// not new.
    pub(crate) record: &'static str,
    /// Deletes old records of the inbox.
    pub(crate) purge_inbox: &'static str,
    /// A whole row by its message id.
    pub(crate) find: &'static str,
    /// Says which handlers a relay has.
    pub(crate) announce: &'static str,
    /// Forgets relays that were silent for long.
    pub(crate) forget: &'static str,
    /// Forgets one relay.
    pub(crate) withdraw: &'static str,
    /// Pauses and live relays.
    pub(crate) control: &'static str,
    /// Pauses something.
    pub(crate) pause: &'static str,
    /// Ends a pause.
    pub(crate) resume: &'static str,
    /// Locks a row for an operator.
    pub(crate) lock_row: &'static str,
    /// What a verb needs to know of a row.
    pub(crate) row_state: &'static str,
    /// Copies a dead letter into a new row.
    pub(crate) replay: &'static str,
    /// The id of a message's row.
    pub(crate) row_id: &'static str,
    /// Resolves a dead letter on an operator's word.
    pub(crate) skip_dead: &'static str,
    /// Makes a pending row a resolved dead letter on an operator's word.
    pub(crate) skip_pending: &'static str,
    /// Makes a pending row due.
    pub(crate) retry_now: &'static str,
    /// Gives back a row whose lease has expired.
    pub(crate) release_expired: &'static str,
    /// Wakes whoever listens, where somebody can.
    pub(crate) notify: Option<&'static str>,
    /// For the rest of a transaction that looks for the first of many rows: no bitmaps, which read and sort all of them,
    /// and no compilation, which the planner thinks worth its while when a backlog is large, and which takes 300 ms.
    pub(crate) plain_plans: Option<&'static str>,
    /// Tells the isolation level of the session, where there are levels, and in which column it stands.
    pub(crate) isolation: Option<&'static str>,
    pub(crate) isolation_column: usize,
    /// What operators ask.
    pub(crate) operate: Operate,
    /// What a doctor asks.
    pub(crate) doctor: Doctor,
    /// The database's clock.
    now: &'static str,
}

/// How a backend claims.
#[derive(Debug)]
pub(crate) enum Claim {
    /// One statement that claims rows and returns them.
    One(&'static str),
    /// A transaction: for each event with due rows lock and return them, then claim them all by id.
    Several {
        /// The events with due rows, by their place in the request, the one with the oldest row first.
        routes: &'static str,
        /// Locks and returns the rows of one event as they were before the claim.
        select: &'static str,
    },
}

/// No row is older, and a time before the year 1000 is none on MySQL.
pub(crate) const LONGEST_AGE: Duration = Duration::from_hours(24 * 365 * 1_000);

/// The time so long ago, or so long that no row is older.
pub(crate) fn ago(at: DateTime<Utc>, age: Duration) -> DateTime<Utc> {
    at - TimeDelta::from_std(age.min(LONGEST_AGE)).unwrap_or_default()
}

impl Dialect {
    /// The dialect of a backend.
    pub(crate) fn of(backend: DbBackend) -> Result<&'static Self, DbErr> {
        match backend {
            DbBackend::Postgres => Ok(&postgres::DIALECT),
            DbBackend::MySql => Ok(&mysql::DIALECT),
            DbBackend::Sqlite => Ok(&sqlite::DIALECT),
            other => Err(DbErr::BackendNotSupported { db: other.as_str(), ctx: "outbox" }),
        }
    }

    /// Fills `:now`, with the database's clock unless a test pins it.
    pub(crate) fn at(&self, now: Option<DateTime<Utc>>) -> Holes {
        let now = now.map_or(Hole::Sql(self.now), |now| Hole::Value(self.time(now)));
        Holes::default().with("now", now)
    }

    /// A time as the backend's columns hold it.
    pub(crate) fn time(&self, time: DateTime<Utc>) -> Value {
        match self.backend {
            DbBackend::Sqlite => text_time(time).into(),
            // With a zone sqlx sends a TIMESTAMP, which ends in 2038 and is NULL to MariaDB afterwards.
            DbBackend::MySql => time.naive_utc().into(),
            _ => time.into(),
        }
    }

    /// A span of time as the backend's SQL adds it: seconds on PostgreSQL, microseconds on MySQL, a modifier of
    /// `strftime` on SQLite.
    pub(crate) fn span(&self, span: Duration) -> Value {
        match self.backend {
            DbBackend::Postgres => span.as_secs_f64().into(),
            DbBackend::Sqlite => format!("{:+.6} seconds", span.as_secs_f64()).into(),
            _ => i64::try_from(span.as_micros()).unwrap_or(i64::MAX).into(),
        }
    }

    /// As [`span`](Self::span), into the past; never so far that a time ends. No row is older than that.
    pub(crate) fn span_ago(&self, span: Duration) -> Value {
        let span = span.min(LONGEST_AGE);
        match self.backend {
            DbBackend::Sqlite => format!("{:+.6} seconds", -span.as_secs_f64()).into(),
            _ => self.span(span),
        }
    }

    /// Ids for `:ids`: one text where a backend can take it apart, so that the statement stays the same whatever the
    /// number of rows; a list elsewhere.
    pub(crate) fn ids(&self, ids: impl Iterator<Item = i64>) -> Hole {
        match self.backend {
            DbBackend::MySql => Hole::Values(ids.map(Value::from).collect()),
            backend => {
                let ids: Vec<_> = ids.map(|id| id.to_string()).collect();
                let list = ids.join(",");
                Hole::from(if backend == DbBackend::Sqlite { format!("[{list}]") } else { list })
            }
        }
    }
}

/// The one form of times on SQLite: UTC, six digits, as `strftime` writes them in our statements.
pub(crate) fn text_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// Begins a transaction that may read before it writes: SQLite refuses the write otherwise when somebody else wrote
/// in between. Inside a transaction this is a savepoint.
pub(crate) async fn begin_immediate<C: TransactionTrait>(db: &C) -> Result<C::Transaction, DbErr> {
    let immediate = Some(SqliteTransactionMode::Immediate);
    db.begin_with_options(TransactionOptions { sqlite_transaction_mode: immediate, ..Default::default() })
        .await
}

/// As [`begin_immediate`], on a pool and to its end.
pub(crate) async fn begin_writer(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let immediate = Some(SqliteTransactionMode::Immediate);
    begin_with(db, TransactionOptions { sqlite_transaction_mode: immediate, ..Default::default() }).await
}

/// Begins a transaction on a pool. On MySQL it is begun even when nobody waits for it any more: it is rolled back then.
///
/// A BEGIN that is dropped before its answer leaves its connection to the pool with a transaction that the driver knows
/// nothing of. What is sent on it next, outside of any transaction, is not stored; and every BEGIN with a level of isolation
/// fails. The drivers of the others take care of it.
pub(crate) async fn begin_with(
    db: &DatabaseConnection,
    options: TransactionOptions,
) -> Result<DatabaseTransaction, DbErr> {
    let backend = db.get_database_backend();
    let db = db.clone();
    let begin = async move { db.begin_with_options(options).await };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) if backend == DbBackend::MySql => runtime
            .spawn(begin)
            .await
            .unwrap_or_else(|error| Err(DbErr::Custom(format!("the transaction was not begun: {error}")))),
        // A driver that waits in another way than Tokio.
        _ => begin.await,
    }
}

/// Begins a transaction of the relay: READ COMMITTED whatever the server's default is, because MySQL's default lets
/// a claim block the application's inserts.
pub(crate) async fn begin_relay(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let isolation_level =
        (db.get_database_backend() != DbBackend::Sqlite).then_some(IsolationLevel::ReadCommitted);
    let sqlite_transaction_mode = Some(SqliteTransactionMode::Immediate);
    begin_with(db, TransactionOptions { isolation_level, sqlite_transaction_mode, access_mode: None }).await
}

//! What a database error means, by SQLSTATE or the driver's code and never by its text.

use sea_orm::{DbErr, RuntimeErr, SqlErr, sqlx};

/// The kinds of database errors that we treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A unique value is there already.
    Duplicate,
    /// A table or column of ours is not there.
    Schema,
    /// Another transaction was in the way.
    Conflict,
    /// No connection, or it was lost.
    Unavailable,
    /// Anything else.
    Other,
}

pub(crate) fn fault(error: &DbErr) -> Fault {
    if let Some(SqlErr::UniqueConstraintViolation(_)) = error.sql_err() {
        return Fault::Duplicate;
    }
    match error {
        DbErr::ConnectionAcquire(_) | DbErr::Conn(_) => Fault::Unavailable,
        DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error)) => {
            driver_fault(error)
        }
        _ => Fault::Other,
    }
}

/// Whether the database has undone the whole transaction with this error, so that what is sent next is outside of it.
/// PostgreSQL does not: it refuses everything until the rollback.
pub(crate) fn undoes_transaction(error: &DbErr) -> bool {
    let Some(error) = database_error(error) else { return false };
    match mysql_number(error) {
        // deadlock
        Some(number) => number == 1213,
        // SQLITE_NOMEM, SQLITE_INTERRUPT, SQLITE_IOERR, SQLITE_FULL: it may have, which it does not tell.
        None => error.code().is_some_and(|code| matches!(&*code, "7" | "9" | "10" | "13")),
    }
}

/// Whether the savepoint that was to be released is not there, or the whole transaction.
pub(crate) fn has_no_savepoint(error: &DbErr) -> bool {
    let Some(error) = database_error(error) else { return false };
    match mysql_number(error) {
        Some(number) => number == 1305,
        // invalid_savepoint_specification, no_active_sql_transaction; SQLite has nothing better than SQLITE_ERROR
        None => error.code().is_some_and(|code| matches!(&*code, "3B001" | "25P01" | "1")),
    }
}

fn database_error(error: &DbErr) -> Option<&dyn sqlx::error::DatabaseError> {
    match error {
        DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error)) => {
            error.as_database_error()
        }
        _ => None,
    }
}

fn driver_fault(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(error) => match mysql_number(&**error) {
            Some(number) => mysql_fault(number),
            None => error.code().map_or(Fault::Other, |code| code_fault(&code)),
        },
        // What is wrong with a value or with us stays wrong.
        sqlx::Error::Configuration(_)
        | sqlx::Error::InvalidArgument(_)
        | sqlx::Error::RowNotFound
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Encode(_)
        | sqlx::Error::Decode(_) => Fault::Other,
        // Everything else is a connection that broke, in whatever way.
        _ => Fault::Unavailable,
    }
}

/// SQLSTATE of PostgreSQL (five characters) and result codes of SQLite (a number).
fn code_fault(code: &str) -> Fault {
    match code {
        // undefined_table, undefined_column, invalid_schema_name
        "42P01" | "42703" | "3F000" => Fault::Schema,
        // serialization_failure, deadlock_detected, lock_not_available, query_canceled (statement_timeout)
        "40001" | "40P01" | "55P03" | "57014" => Fault::Conflict,
        // admin_shutdown, crash_shutdown, cannot_connect_now, database_dropped, idle_session_timeout,
        // idle_in_transaction_session_timeout, read_only_sql_transaction
        // (a standby, or a primary that has just become one)
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25P03" | "25006" => Fault::Unavailable,
        // connection_exception, insufficient_resources
        code if code.len() == 5 && (code.starts_with("08") || code.starts_with("53")) => Fault::Unavailable,
        // SQLITE_ERROR: our statements are known to be right, so it is the schema that is not.
        "1" => Fault::Schema,
        // SQLITE_BUSY, SQLITE_LOCKED and their extended forms
        "5" | "6" | "261" | "262" | "517" | "773" => Fault::Conflict,
        // SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN
        "8" | "10" | "13" | "14" => Fault::Unavailable,
        _ => Fault::Other,
    }
}

fn mysql_fault(number: u16) -> Fault {
    match number {
        // unknown database, unknown column, no such table
        1049 | 1054 | 1146 => Fault::Schema,
        // lock wait timeout, deadlock, record has changed since last read, query interrupted, its time is over (MySQL,
        // MariaDB)
        1205 | 1213 | 1020 | 1317 | 3024 | 1969 => Fault::Conflict,
        // too many connections (of a user), not ready (Galera), shutdown in progress, table full, read-only, killed, gone or
        // lost, disconnected because it was idle
        1040 | 1203 | 1047 | 1053 | 1114 | 1290 | 1836 | 1927 | 2006 | 2013 | 4031 => Fault::Unavailable,
        _ => Fault::Other,
    }
}

/// MySQL's SQLSTATE is too coarse ("HY000" for a lock wait timeout), so its own number is used.
#[cfg(feature = "mysql")]
fn mysql_number(error: &dyn sqlx::error::DatabaseError) -> Option<u16> {
    error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(sqlx::mysql::MySqlDatabaseError::number)
}

#[cfg(not(feature = "mysql"))]
fn mysql_number(_: &dyn sqlx::error::DatabaseError) -> Option<u16> {
    None
}

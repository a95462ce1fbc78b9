//! Wake-ups from process to process, on PostgreSQL.
//!
//! A relay of another process finds new rows by polling, within [`poll_max`](outbox_core::RelayConfig::poll_max). With
//! [`tell`] in each process that saves, and [`listen`] in each that has a relay, it hears of them within milliseconds:
//!
//! ```no_run
//! # async fn run(db: sea_orm::DatabaseConnection) {
//! use outbox_seaorm::{TableNames, notify};
//!
//! tokio::spawn({
//!     let db = db.clone();
//!     async move { notify::tell(&db, TableNames::new()).await }
//! });
//! tokio::spawn(async move { notify::listen(&db, TableNames::new()).await });
//! # }
//! ```
//!
//! What is told is only that there is something, never what, and always after the commit: a NOTIFY within the
//! transaction would make all transactions of the database wait for each other's commits. However many are committed,
//! at most one is sent every five milliseconds, as a statement of its own on `db`.
//!
//! Nothing depends on it. Where a wake-up is lost or was never sent (a commit of your own plain transaction, which nobody
//! sees) polling finds the rows; a forged one makes a relay look in vain, two hundred times a second at most.

use crate::{convert::store_error, dialect, dialect::Dialect, sql::Holes, tables::TableNames};
use outbox_core::{
    StoreError,
    store::StoreErrorKind,
    wake::{self, OwnCommits},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr};
use std::{convert::Infallible, time::Duration};
use tokio::time::sleep;

/// The shortest time between two wake-ups, sent or heard.
const BETWEEN: Duration = Duration::from_millis(5);

/// Wait before the database is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Tells the relays of other processes what is committed in this one, until the future is dropped. It runs beside the
/// application, once in a process.
///
/// # Errors
///
/// At the start, on a database that has no wake-ups: any but PostgreSQL. A database that is away is tried again every
/// second.
///
/// # Cancel safety
///
/// Dropping it ends it; at most one wake-up is lost.
pub async fn tell(db: &DatabaseConnection, tables: TableNames) -> Result<Infallible, StoreError> {
    let (dialect, notify) = notifying(db)?;
    let names = tables.for_backend(dialect.backend);
    let holes = Holes::default().with("channel", channel(tables));
    let mut commits = OwnCommits::subscribe();
    loop {
        commits.next().await;
        let statement = crate::sql::statement(dialect.backend, &names, notify, &holes);
        match db.query_one_raw(statement).await {
            Ok(_) => sleep(BETWEEN).await,
            Err(error) => {
                tracing::warn!(%error, "relays of other processes were not woken; they find the rows when they poll");
                sleep(RETRY).await;
            }
        }
    }
}

/// Wakes the relays of this process when another one tells of a commit, until the future is dropped. It holds a
/// connection of its own beside those of `db`, and makes a new one when that is cut.
///
/// # Errors
///
/// At the start, on a database that has no wake-ups: any but PostgreSQL. A database that is away is tried again every
/// second.
///
/// # Cancel safety
///
/// Dropping it ends it and closes the connection.
pub async fn listen(db: &DatabaseConnection, tables: TableNames) -> Result<Infallible, StoreError> {
    notifying(db)?;
    let channel = channel(tables);
    loop {
        let failed: Result<Infallible, DbErr> = async {
            let mut listener = dialect::Listener::connect(db, &channel).await?;
            loop {
                // What was told while nobody listened is not told again.
                wake::heard();
                sleep(BETWEEN).await;
                listener.next().await?;
            }
        }
        .await;
        let Err(error) = failed;
        tracing::warn!(%error, "wake-ups of other processes are not heard; rows are found by polling until the connection is back");
        sleep(RETRY).await;
    }
}

fn notifying(db: &DatabaseConnection) -> Result<(&'static Dialect, &'static str), StoreError> {
    let backend = db.get_database_backend();
    let dialect = Dialect::of(backend).map_err(|error| store_error("wake relays", error))?;
    let notify = dialect.notify.ok_or_else(|| {
        let text = format!(
            "{} has no wake-ups between processes; leave notify::tell and notify::listen out: relays poll",
            backend.as_str()
        );
        StoreError::new(StoreErrorKind::Setup, text)
    })?;
    Ok((dialect, notify))
}

/// Tables of one name in two schemas share it, and look in vain now and then.
fn channel(tables: TableNames) -> String {
    tables.raw("outbox")
}

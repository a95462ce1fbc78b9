//! What is wrong with an outbox, and the command that mends it.
//!
//! ```
//! use outbox_seaorm::{SeaOrmStore, doctor::{self, DoctorOptions}};
//!
//! # async fn look(db: sea_orm::DatabaseConnection) -> Result<(), outbox_core::StoreError> {
//! let diagnosis = doctor::examine(&SeaOrmStore::new(db), &DoctorOptions::default()).await?;
//! for finding in &diagnosis.findings {
//!     println!("{} {}: {} ({}). {}", finding.severity, finding.code, finding.what, finding.why, finding.mend);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The codes are listed in `docs/cli.md`.

mod delivery;
mod finding;
mod relays;
mod server;
mod tables;
mod words;

pub use finding::{Diagnosis, DoctorOptions, Finding, Severity, Unasked};

use crate::store::{SeaOrmStore, signals::clock};
use chrono::{DateTime, Utc};
use outbox_core::{OutboxStore, StoreError, store::StoreErrorKind};
use sea_orm::DbErr;
use words::Words;

/// Why something was not checked.
struct NotAsked(String);

impl From<DbErr> for NotAsked {
    fn from(error: DbErr) -> Self {
        Self(format!("the database refused: {error}"))
    }
}

impl From<StoreError> for NotAsked {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

type Found = Result<Vec<Finding>, NotAsked>;

/// What every check knows.
struct Case<'a> {
    store: &'a SeaOrmStore,
    options: &'a DoctorOptions,
    /// The database's clock.
    at: DateTime<Utc>,
    words: Words,
}

/// Looks at everything that is known to go wrong.
///
/// It changes no row. On SQLite it takes the write lock for a moment, to see whether it is free, and moves what can be
/// moved from the log into the file, as every commit does. What the database does not let this login ask is told in
/// [`Diagnosis::unasked`], and hides nothing else.
///
/// # Errors
///
/// When the database cannot be reached at all.
pub async fn examine(store: &SeaOrmStore, options: &DoctorOptions) -> Result<Diagnosis, StoreError> {
    let clock = clock(store, options.now).await;
    let at = clock.map_err(|error| crate::convert::store_error("be examined", error))?;
    let case = Case { store, options, at, words: Words::of(&store.names) };
    let mut diagnosis = Diagnosis { at, findings: Vec::new(), checked: Vec::new(), unasked: Vec::new() };
    server::look(&case, &mut diagnosis).await;
    if let Err(error) = store.check().await {
        if error.kind() != StoreErrorKind::Setup {
            return Err(error);
        }
        diagnosis.add("the tables", Ok(vec![tables::missing(&case, &error)]));
        diagnosis.sort();
        return Ok(diagnosis);
    }
    tables::look(&case, &mut diagnosis).await;
    relays::look(&case, &mut diagnosis).await;
    delivery::look(&case, &mut diagnosis).await;
    diagnosis.sort();
    Ok(diagnosis)
}

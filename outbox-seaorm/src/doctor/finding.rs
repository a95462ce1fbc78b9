//! What a doctor says.

use super::{Found, NotAsked};
use chrono::{DateTime, Utc};
use std::{fmt, time::Duration};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something is not delivered, or will not be.
    Error,
    /// Something that will cost time, space or a surprise.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Its name, which does not change.
    pub code: &'static str,
    /// What was found, and where.
    pub what: String,
    /// Why that is a problem.
    pub why: &'static str,
    /// What mends it: one command, or what to do with the commands in backticks. Commands begin with `outbox`, or are
    /// SQL.
    pub mend: String,
}

impl Finding {
    pub(super) fn error(code: &'static str, what: String, why: &'static str, mend: String) -> Self {
        Self { severity: Severity::Error, code, what, why, mend }
    }

    pub(super) fn warning(code: &'static str, what: String, why: &'static str, mend: String) -> Self {
        Self { severity: Severity::Warning, code, what, why, mend }
    }
}

/// Something that could not be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unasked {
    /// What.
    pub what: &'static str,
    /// Why not, in the database's words.
    pub why: String,
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// When (database clock).
    pub at: DateTime<Utc>,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// What was checked.
    pub checked: Vec<&'static str>,
    /// What the database did not let this login ask.
    pub unasked: Vec<Unasked>,
}

impl Diagnosis {
    pub(super) fn add(&mut self, what: &'static str, found: Found) {
        match found {
            Ok(findings) => {
                self.checked.push(what);
                self.findings.extend(findings);
            }
            Err(NotAsked(why)) => self.unasked.push(Unasked { what, why }),
        }
    }

    pub(super) fn sort(&mut self) {
        self.findings.sort_by_key(|finding| finding.severity);
    }
}

/// From where on something counts as wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoctorOptions {
    /// How long dispatched rows are kept; what is a day older says that no purge runs. Default 7 days, as a relay's.
    pub retention: Duration,
    /// How long a row may be due while relays live. Default 5 minutes.
    pub late: Duration,
    /// How long a lease may have expired before somebody takes the row over. Default 1 minute.
    pub orphaned: Duration,
    /// How long a transaction may be open. Default 5 minutes.
    pub long_transaction: Duration,
    /// How far the clocks of database and application may differ. Default 5 seconds.
    pub clock_skew: Duration,
    /// How many dead versions a table may have before somebody cleans up (PostgreSQL). Default 200,000.
    pub dead_versions: u64,
    /// How many bytes the index of live rows, free space in a table, or SQLite's log may have before they are looked at.
    /// Default 256 MiB.
    pub bytes: u64,
    /// Instead of the database's clock, in tests.
    pub now: Option<DateTime<Utc>>,
}

impl Default for DoctorOptions {
    fn default() -> Self {
        Self {
            retention: Duration::from_hours(7 * 24),
            late: Duration::from_mins(5),
            orphaned: Duration::from_mins(1),
            long_transaction: Duration::from_mins(5),
            clock_skew: Duration::from_secs(5),
            dead_versions: 200_000,
            bytes: 256 * 1024 * 1024,
            now: None,
        }
    }
}

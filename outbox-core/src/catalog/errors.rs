//! What can be wrong between the events of a binary and its lock.

use super::Difference;
use std::{fmt, io, path::Path};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CatalogError {
    /// The file cannot be read or written.
    Io {
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// The file is not a lock.
    Malformed {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no file yet.
    NoLock {
        /// Where it was looked for.
        path: String,
    },
    /// An event changed in a way that something cannot read.
    Breaking {
        /// Name and version.
        logical_name: String,
        /// Its Rust type with its place.
        declared: String,
        /// Every difference.
        differences: Vec<Difference>,
    },
    /// An event cannot read what it writes itself.
    Unreadable {
        /// Name and version.
        logical_name: String,
        /// Its Rust type with its place.
        declared: String,
        /// Every difference.
        differences: Vec<Difference>,
    },
    /// Nothing reads an event of the lock any more.
    Gone {
        /// Name and version.
        logical_name: String,
    },
    /// A former name is no longer an alias of its event.
    AliasRemoved {
        /// Name and version.
        logical_name: String,
        /// Its Rust type with its place.
        declared: String,
        /// The former name.
        alias: String,
    },
    /// An event no longer reads an older version.
    VersionUnread {
        /// Name and version.
        logical_name: String,
        /// Its Rust type with its place.
        declared: String,
        /// The older version.
        version: u16,
    },
    /// An event that was released is a draft again.
    DraftAgain {
        /// Name and version.
        logical_name: String,
        /// Its Rust type with its place.
        declared: String,
    },
    /// A change that breaks nothing is not in the lock yet.
    Unrecorded {
        /// Name and version.
        logical_name: String,
        /// What changed.
        change: String,
    },
}

impl CatalogError {
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io { path: path.display().to_string(), reason: error.to_string() }
    }

    /// The differences, of an event that changed.
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::Breaking { differences, .. } | Self::Unreadable { differences, .. } => differences,
            _ => &[],
        }
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, reason } => write!(f, "{path} cannot be read or written: {reason}"),
            Self::Malformed { path, reason } => {
                write!(f, "{path} is not a lock of events: {reason}; take it from version control again")
            }
            Self::NoLock { path } => write!(
                f,
                "there is no lock at {path}; record the events with OUTBOX_LOCK=update, and check the file in"
            ),
            Self::Breaking { logical_name, declared, differences } => {
                write!(f, "{logical_name}, declared by {declared}, changed under the same version:")?;
                list(f, differences)?;
                let (name, version) = logical_name.rsplit_once(".v").unwrap_or((logical_name, "1"));
                let next = version.parse::<u32>().map_or(2, |version| version + 1);
                write!(
                    f,
                    "\n      Undo it, or keep this type as it was and derive a new one:\n      #[outbox(name = {name:?}, version = {next}, upcast_from = …)]"
                )
            }
            Self::Unreadable { logical_name, declared, differences } => {
                write!(f, "{logical_name}, declared by {declared}, cannot read what it writes:")?;
                list(f, differences)?;
                write!(
                    f,
                    "\n      Every row would be a dead letter. Give the fields that are not written #[serde(default)]"
                )
            }
            Self::Gone { logical_name } => write!(
                f,
                "{logical_name} is in the lock, and no event of this binary reads it: rows of it would stay pending. Keep its type, read it with `upcast_from`, `upcast_json` or `alias` of another event, or write `\"retired\": true` into the lock when no row of it is left"
            ),
            Self::AliasRemoved { logical_name, declared, alias } => write!(
                f,
                "{logical_name}, declared by {declared}, no longer has `alias = {alias:?}`: rows under that name would stay pending. Put it back, or take it out of the lock when no such row is left"
            ),
            Self::VersionUnread { logical_name, declared, version } => write!(
                f,
                "{logical_name}, declared by {declared}, no longer reads version {version}: its handlers would not see those rows. Put the upcast back, or take the version out of `reads` in the lock when no such row is left"
            ),
            Self::DraftAgain { logical_name, declared } => write!(
                f,
                "{logical_name}, declared by {declared}, is a `draft`, and the lock says that it was released: rows of it may be stored. Take `draft` away, or write \"draft\": true into the lock when it never left this branch"
            ),
            Self::Unrecorded { logical_name, change } => {
                write!(
                    f,
                    "{logical_name}: {change}; record it with OUTBOX_LOCK=update, and check the lock in"
                )
            }
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, differences: &[Difference]) -> fmt::Result {
    differences.iter().try_for_each(|difference| write!(f, "\n      {difference}"))
}

/// Everything that is wrong between the events of a binary and its lock.
#[derive(Clone, PartialEq, Eq)]
pub struct CatalogErrors(pub(super) Vec<CatalogError>);

impl CatalogErrors {
    /// The errors, at least one.
    pub fn errors(&self) -> &[CatalogError] {
        &self.0
    }
}

impl From<CatalogError> for CatalogErrors {
    fn from(error: CatalogError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for CatalogErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the events do not fit their lock:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  - {error}"))
    }
}

impl std::error::Error for CatalogErrors {}

/// As its text: this is what a test that returns it prints.
impl fmt::Debug for CatalogErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

//! Errors of a store, by what the relay does about them.

use std::{error::Error, fmt, future::Future, time::Duration};
use tokio::time::timeout;

/// What to do about a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The database cannot be reached; it may come back.
    Unavailable,
    /// Another transaction was in the way (deadlock, serialisation failure, busy); trying again is right.
    Conflict,
    /// The tables are missing or older than this version; nothing works until somebody migrates.
    Setup,
    /// A row holds something that this version cannot read.
    UnreadableRow,
    /// Anything else the database said.
    Other,
}

/// A store could not do what it was asked to.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error with what happened, to what, and what to do.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Adds the database's own error.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What to do about it.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether trying again later can succeed without anybody's help.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Conflict)
    }
}

/// How long a database may take to answer what is asked beside the claims.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What the store answers, unless it takes too long: one call that hangs must not end whatever asked.
pub(crate) async fn answered<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(patience, asked).await.unwrap_or_else(|_| {
        let text = format!("the database did not answer in {patience:?}");
        Err(StoreError::new(StoreErrorKind::Unavailable, text))
    })
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.source.as_ref().map_or(Ok(()), |source| write!(f, ": {source}"))
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

//! What is in the table.

use super::{
    MemoryStore,
    raised::{is, read},
};
use crate::{
    event::OutboxEvent,
    row::{OutboxRow, Status},
    store::{OutboxStore, StoreError},
};
use std::{fmt, future::Future};

/// A store whose rows a test can look at: [`MemoryStore`], and `SeaOrmStore` with the feature `testing` of
/// `outbox-seaorm`.
pub trait Inspect: OutboxStore {
    /// All rows, by id.
    ///
    /// # Errors
    ///
    /// The database's error, or a row that this version cannot read.
    fn all_rows(&self) -> impl Future<Output = Result<Vec<OutboxRow>, StoreError>> + Send;
}

impl Inspect for MemoryStore {
    async fn all_rows(&self) -> Result<Vec<OutboxRow>, StoreError> {
        Ok(self.rows())
    }
}

/// The rows of an outbox at one moment, in the order in which they were stored.
#[derive(Clone, PartialEq)]
pub struct Stored(Vec<OutboxRow>);

/// A row, and the event in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredEvent<E> {
    /// The row.
    pub row: OutboxRow,
    /// What its payload says.
    pub event: E,
}

impl Stored {
    /// The rows of a store now.
    ///
    /// # Panics
    ///
    /// When they cannot be read.
    pub async fn of(store: &impl Inspect) -> Self {
        Self(store.all_rows().await.unwrap_or_else(|error| panic!("the stored rows cannot be read: {error}")))
    }

    pub(super) fn new(rows: Vec<OutboxRow>) -> Self {
        Self(rows)
    }

    /// The rows.
    pub fn rows(&self) -> &[OutboxRow] {
        &self.0
    }

    /// How many rows are in a state.
    pub fn count(&self, status: Status) -> usize {
        self.0.iter().filter(|row| row.status == status).count()
    }

    /// All events of a type with their rows.
    ///
    /// # Panics
    ///
    /// When one of them cannot be read.
    pub fn all<E: OutboxEvent>(&self) -> Vec<StoredEvent<E>> {
        let of_type = self.0.iter().filter(|row| is::<E>(&row.envelope));
        of_type.map(|row| StoredEvent { row: row.clone(), event: read(&row.envelope) }).collect()
    }

    /// The event of a type of which there is one; there may be others of other types.
    ///
    /// # Panics
    ///
    /// When there is none, or more than one.
    #[track_caller]
    pub fn one<E: OutboxEvent>(&self) -> StoredEvent<E> {
        let mut all = self.all::<E>();
        let (count, name) = (all.len(), E::LOGICAL_NAME);
        assert!(count == 1, "{count} events of {name} are stored instead of one, among {self}");
        all.remove(0)
    }

    /// Checks that nothing is stored.
    ///
    /// # Panics
    ///
    /// When something is.
    #[track_caller]
    pub fn assert_none(&self) {
        assert!(self.0.is_empty(), "nothing was to be stored, but there are {self}");
    }

    /// Checks that every row is in this state.
    ///
    /// # Panics
    ///
    /// When one is not.
    #[track_caller]
    pub fn assert_all(&self, status: Status) {
        assert!(self.count(status) == self.0.len(), "every row was to be {status}, but there are {self}");
    }
}

/// The rows, one a line, with what became of them.
impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no rows at all");
        }
        write!(f, "{} rows", self.0.len())?;
        for OutboxRow { id, envelope, status, attempts, progress, last_error, .. } in &self.0 {
            let (name, payload) = (envelope.logical_name(), &envelope.payload);
            write!(f, "\n  {id} {name} {status}, {attempts} attempts, {payload}")?;
            for (handler, state) in progress {
                write!(f, "\n      {handler}: {state:?}")?;
            }
            if let Some((class, error)) = last_error {
                write!(f, "\n      {class}: {error}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

//! Counts the statements that a connection sends.

use sea_orm::DatabaseConnection;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The statements of one pool, in order. BEGIN, COMMIT and savepoints are not among them.
#[derive(Clone, Debug, Default)]
pub struct Statements(Arc<Mutex<Vec<(String, String)>>>);

impl Statements {
    /// Starts to listen. Only clones of `db` that are made afterwards are heard.
    pub fn listen(db: &mut DatabaseConnection) -> Self {
        let statements = Self::default();
        let sink = statements.clone();
        db.set_metric_callback(move |info| {
            sink.0.lock().unwrap().push((info.statement.sql.clone(), info.statement.to_string()));
        });
        statements
    }

    /// Forgets what was heard and returns it.
    ///
    /// # Panics
    ///
    /// When a test panicked while it listened.
    pub fn take(&self) -> Vec<String> {
        self.take_both().into_iter().map(|(sql, _)| sql).collect()
    }

    /// As [`take`](Self::take), with the values written into the text.
    ///
    /// # Panics
    ///
    /// As [`take`](Self::take).
    pub fn take_filled(&self) -> Vec<String> {
        self.take_both().into_iter().map(|(_, filled)| filled).collect()
    }

    /// Forgets what was heard and returns one filled statement of each text.
    ///
    /// # Panics
    ///
    /// As [`take`](Self::take).
    pub fn take_each(&self) -> Vec<String> {
        let each: BTreeMap<_, _> = self.take_both().into_iter().collect();
        each.into_values().collect()
    }

    fn take_both(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

//! Failures of the delivery that were found by attacking it.

/// On the model in memory, with a clock that stands still.
mod model;

/// Observers, monitors and the test kit, given the worst.
mod watchers;

/// What operators say that is odd, huge or beside the point.
mod operators;

/// Transactions of handlers that drop things half-way.
mod effects;

/// On real databases.
mod sql;

//! Failures of the delivery that were found by attacking it.

/// On the model in memory, with a clock that stands still.
mod model;

/// On real databases.
mod sql;

//! The harness of the integration tests: databases, sample events and aggregates, and the store's conformance suite.
//!
//! Every test gets a database of its own. PostgreSQL and MySQL/MariaDB are found by `OUTBOX_TEST_POSTGRES_URL` and
//! `OUTBOX_TEST_MYSQL_URL`, which `scripts/test.sh` sets; a missing one is a failure.

// A harness fails by panicking.
#![allow(clippy::missing_panics_doc)]

pub mod command;
pub mod conformance;
pub mod database;
pub mod entities;
pub mod events;
pub mod interposed;
mod macros;
pub mod process;
pub mod proxy;
pub mod running;
pub mod statements;
pub mod subject;
pub mod wait;

/// The code of README.md, compiled and run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

/// The code of docs/events.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../docs/events.md")]
mod events_page {}

/// The code of docs/guide.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide.md")]
mod guide {}

/// The code of docs/order.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../docs/order.md")]
mod order {}

/// The code of docs/operating.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../docs/operating.md")]
mod operating {}

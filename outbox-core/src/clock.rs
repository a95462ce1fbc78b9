//! The monotonic clock by which leases and deadlines are watched: tokio's, so that it stands still where a test stops
//! that one.

use std::time::Instant;

pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

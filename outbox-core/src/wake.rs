//! The in-process wake-up: a commit that wrote outbox rows tells the relays of this process at once.
//!
//! Polling remains the net; a wake-up only saves the wait. It says nothing of which rows or which database, so a relay
//! may look in vain.

use std::sync::LazyLock;
use tokio::sync::watch;

static COMMITS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

/// Tells the relays of this process that outbox rows were committed.
pub fn committed() {
    COMMITS.send_modify(|commits| *commits = commits.wrapping_add(1));
}

/// Becomes ready when something was committed since the last look.
#[derive(Debug)]
pub(crate) struct Commits(watch::Receiver<u64>);

impl Commits {
    pub(crate) fn subscribe() -> Self {
        Self(COMMITS.subscribe())
    }

    /// Cancel safe: a commit that is not seen now is seen by the next call.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The sender is a static and is never dropped.
            std::future::pending::<()>().await;
        }
    }
}

//! The wake-up: a commit that wrote outbox rows tells the relays of this process at once, and where something carries it
//! (`outbox_seaorm::notify` on PostgreSQL) those of other processes.
//!
//! Polling remains the net; a wake-up only saves the wait. It says nothing of which rows or which database, so a relay
//! may look in vain.

use std::{future::pending, sync::LazyLock};
use tokio::sync::watch;

static COMMITS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));
static HEARD: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

/// Tells the relays of this process that outbox rows were committed here.
pub fn committed() {
    COMMITS.send_modify(|commits| *commits = commits.wrapping_add(1));
}

/// Tells the relays of this process that outbox rows were committed elsewhere. Whoever tells other processes of
/// [`committed`] does not hear this, so a wake-up is not sent round for ever.
pub fn heard() {
    HEARD.send_modify(|heard| *heard = heard.wrapping_add(1));
}

/// The commits of this process, for whoever tells others of them.
#[derive(Debug)]
pub struct OwnCommits(watch::Receiver<u64>);

impl OwnCommits {
    /// From now on.
    pub fn subscribe() -> Self {
        Self(COMMITS.subscribe())
    }

    /// Becomes ready when something was committed since the last call; many commits in between are one. Cancel safe.
    pub async fn next(&mut self) {
        changed(&mut self.0).await;
    }
}

/// Becomes ready when something was committed, here or elsewhere, since the last look.
#[derive(Debug)]
pub(crate) struct Commits {
    here: watch::Receiver<u64>,
    elsewhere: watch::Receiver<u64>,
}

impl Commits {
    pub(crate) fn subscribe() -> Self {
        Self { here: COMMITS.subscribe(), elsewhere: HEARD.subscribe() }
    }

    /// Cancel safe: a commit that is not seen now is seen by the next call.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            () = changed(&mut self.here) => {}
            () = changed(&mut self.elsewhere) => {}
        }
    }
}

async fn changed(receiver: &mut watch::Receiver<u64>) {
    if receiver.changed().await.is_err() {
        // The sender is a static and is never dropped.
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_heard_wakes_relays_and_is_not_told_again() {
        const MANY: u64 = 10_000;
        let (mut relay, teller) = (Commits::subscribe(), OwnCommits::subscribe());
        let before = *teller.0.borrow();
        (0..MANY).for_each(|_| heard());
        relay.next().await;
        // Other tests of this process commit now and then.
        assert!(teller.0.borrow().wrapping_sub(before) < MANY);
    }
}

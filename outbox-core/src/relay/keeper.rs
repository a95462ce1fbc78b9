//! What goes on beside the loop of claims: renewing leases, following what operators say, purging.
//!
//! It runs on its own, so that a claim which hangs does not cost the rows that run their leases.

use super::{
    config::{RelayConfig, Retention},
    health::RelayHealth,
    leases::{Key, Leases},
    outage::Outage,
};
use crate::{
    observe::{Observed, Observers},
    router::{Gates, Router},
    store::{
        Announcement, Control, Finished, HandlerSets, OutboxStore, PATIENCE, Purge, Renewal, Renewed,
        StoreError, answered,
    },
};
use chrono::{DateTime, Utc};
use std::{
    collections::BTreeSet,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout};

/// How often pauses are read.
const CONTROL_INTERVAL: Duration = Duration::from_secs(1);
/// How often a relay says that it lives, and when it is forgotten.
const ANNOUNCE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));
/// How often finished rows are purged; less up to a quarter by chance.
const PURGE_INTERVAL: Duration = Duration::from_mins(1);
/// The longest wait for the first purge.
const FIRST_PURGE: Duration = Duration::from_secs(3);
/// Rows that one purge deletes at most, so that its transaction stays short.
const PURGE_BATCH: u32 = 1_000;
/// How long a stopping relay tries to take its announcement back.
const LAST_WORD: Duration = Duration::from_secs(1);

pub(crate) struct Keeper<S> {
    pub(crate) store: Arc<S>,
    pub(crate) router: Router,
    pub(crate) config: RelayConfig,
    pub(crate) leases: Leases,
    pub(crate) gates: Gates,
    pub(crate) outage: Outage,
    pub(crate) health: RelayHealth,
    pub(crate) observers: Observers,
    pub(crate) now: Option<DateTime<Utc>>,
    /// The differences that were warned of last.
    pub(crate) differences: Mutex<BTreeSet<String>>,
}

impl<S: OutboxStore> Keeper<S> {
    /// Works until `stop` says so; what is being written then is finished.
    pub(crate) async fn run(&self, stop: watch::Receiver<bool>) {
        tokio::join!(
            self.renew_leases(stop.clone()),
            self.follow_control(stop.clone()),
            self.purge_now_and_then(stop)
        );
        let withdrawn = timeout(LAST_WORD, self.store.withdraw(&self.config.name)).await;
        if !matches!(withdrawn, Ok(Ok(()))) {
            tracing::debug!(relay = self.config.name, "the relay is forgotten only after a while");
        }
    }

    pub(crate) async fn renew_leases(&self, mut stop: watch::Receiver<bool>) {
        while rest(self.leases.interval(), &mut stop).await {
            let due = self.leases.due();
            if !due.is_empty() {
                self.tried("renew leases", self.renew(&due)).await;
            }
        }
    }

    async fn renew(&self, due: &[Key]) -> Result<(), StoreError> {
        let asked = crate::clock::now();
        let renewal = Renewal { rows: due, lease: self.config.lease, now: self.now };
        let Renewed { lost, passed_over } = answered(self.config.lease, self.store.renew(&renewal)).await?;
        let renewed: Vec<_> = due.iter().filter(|key| !passed_over.contains(key)).copied().collect();
        self.leases.renewed(&renewed, &lost, asked);
        Ok(())
    }

    async fn follow_control(&self, mut stop: watch::Receiver<bool>) {
        let mut announced = Instant::now();
        while rest(CONTROL_INTERVAL, &mut stop).await {
            if announced.elapsed() >= ANNOUNCE.0 {
                self.tried("announce the relay", self.announce()).await;
                announced = Instant::now();
            }
            self.tried("read what is paused", self.read_control()).await;
        }
    }

    /// Says which handlers this relay has.
    pub(crate) async fn announce(&self) -> Result<(), StoreError> {
        let handlers = self.router.handler_sets();
        let announcement = Announcement {
            relay: &self.config.name,
            handlers: &handlers,
            proceed: self.router.proceed(),
            lasts: ANNOUNCE.1,
            now: self.now,
        };
        answered(PATIENCE, self.store.announce(&announcement)).await
    }

    /// Follows pauses, and warns of relays with other handlers.
    pub(crate) async fn read_control(&self) -> Result<(), StoreError> {
        let Control { pauses, relays } = answered(PATIENCE, self.store.control(self.now)).await?;
        let paused: BTreeSet<_> = pauses.iter().map(|entry| entry.pause.clone()).collect();
        let text: Vec<_> = paused.iter().map(ToString::to_string).collect();
        if self.gates.set_pauses(paused) {
            tracing::warn!(paused = text.join(", "), "what is paused has changed");
        }
        let ours = self.router.handler_sets();
        let others = relays.iter().filter(|relay| relay.name != self.config.name);
        let found: BTreeSet<_> =
            others.flat_map(|relay| differences(&relay.name, &relay.handlers, &ours)).collect();
        let mut known = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        for difference in found.difference(&known) {
            tracing::warn!(
                relay = self.config.name,
                "{difference}: whoever claims a row first marks it for all, so handlers may be left out; give all relays of a table the same handlers"
            );
        }
        *known = found;
        Ok(())
    }

    async fn purge_now_and_then(&self, mut stop: watch::Receiver<bool>) {
        // Soon after the start: a relay that is restarted often has to purge as well.
        let mut pause = FIRST_PURGE.mul_f64(fastrand::f64());
        while rest(pause, &mut stop).await {
            pause = PURGE_INTERVAL.mul_f64(1.0 - 0.25 * fastrand::f64());
            for (finished, older_than) in due_purges(&self.config.retention) {
                self.tried("purge", self.purge(finished, older_than, &stop)).await;
            }
        }
    }

    /// Purges in batches until little is left.
    async fn purge(
        &self,
        finished: Finished,
        older_than: Duration,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), StoreError> {
        let purge = Purge { finished, older_than, limit: PURGE_BATCH, now: self.now };
        let mut deleted = 0;
        loop {
            let purged = answered(PATIENCE, self.store.purge(&purge)).await?;
            deleted += purged.rows;
            if purged.busy || purged.rows < u64::from(PURGE_BATCH) || *stop.borrow() {
                break;
            }
        }
        if deleted > 0 {
            tracing::debug!(rows = deleted, ?finished, "purged");
        }
        Ok(())
    }

    /// Does something that may fail, unless the database is known to be away.
    async fn tried(&self, doing: &'static str, work: impl Future<Output = Result<(), StoreError>>) {
        if !self.outage.may_try() {
            return;
        }
        let result = work.await;
        self.outage.tried(&result);
        self.health.tried(doing, &result);
        if let Err(error) = &result {
            super::log::log_failure(doing, error);
            self.observers.tell(&Observed::StoreFailed { doing, error });
        }
    }
}

fn due_purges(retention: &Retention) -> impl Iterator<Item = (Finished, Duration)> {
    let dispatched = Some((Finished::Dispatched, retention.dispatched.unwrap_or(Duration::ZERO)));
    let resolved = retention.resolved.map(|age| (Finished::Resolved, age));
    let history = retention.history.map(|age| (Finished::History, age));
    [dispatched, resolved, history].into_iter().flatten()
}

/// Where another relay has other handlers for an event that both know.
fn differences(relay: &str, theirs: &HandlerSets, ours: &HandlerSets) -> Vec<String> {
    let list = |ids: &BTreeSet<String>| ids.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let differ = |(event, ids): (&String, &BTreeSet<String>)| {
        let their_ids = theirs.get(event).filter(|their_ids| *their_ids != ids)?;
        Some(format!(
            "relay {relay} handles {event} with [{}], this one with [{}]",
            list(their_ids),
            list(ids)
        ))
    };
    ours.iter().filter_map(differ).collect()
}

/// Waits, and returns false once the relay is to stop. Cancel safe.
async fn rest(pause: Duration, stop: &mut watch::Receiver<bool>) -> bool {
    // Not stopped within the pause, or whoever could stop it is gone, which comes to the same as stopping.
    timeout(pause, stop.wait_for(|stop| *stop)).await.is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(sets: &[(&str, &[&str])]) -> HandlerSets {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        sets.iter().map(|(event, handlers)| ((*event).to_owned(), ids(handlers))).collect()
    }

    #[test]
    fn only_events_that_both_relays_know_are_compared() {
        let ours = sets(&[("a.b.v1", &["x.y", "x.z"]), ("a.c.v1", &[]), ("a.d.v1", &["x.y"])]);
        assert_eq!(
            differences("other", &sets(&[("a.d.v1", &["x.y"]), ("a.e.v1", &["x.y"])]), &ours),
            [""; 0]
        );
        let found = differences("other", &sets(&[("a.b.v1", &["x.y"]), ("a.c.v1", &["x.y"])]), &ours);
        assert_eq!(
            found,
            [
                "relay other handles a.b.v1 with [x.y], this one with [x.y, x.z]",
                "relay other handles a.c.v1 with [x.y], this one with []",
            ]
        );
    }
}

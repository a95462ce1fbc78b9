//! Which leases this relay holds for rows that run, and when they are to be renewed.

use crate::row::{LeaseToken, RowId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// A row, and the claim under which it runs.
pub(crate) type Key = (RowId, LeaseToken);

/// The leases of the rows that run now. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    held: Arc<Mutex<HashMap<Key, watch::Sender<Instant>>>>,
    lease: Duration,
}

impl Leases {
    pub(crate) fn new(lease: Duration) -> Self {
        Self { held: Arc::default(), lease }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<Instant>>> {
        // No code of others runs under the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the lease of a row until the result is dropped. Whoever handles the row watches `ends`.
    pub(crate) fn hold(&self, key: Key, ends: watch::Sender<Instant>) -> Held {
        self.lock().insert(key, ends);
        Held { leases: self.clone(), key }
    }

    /// How often to look: several times before a lease has lost the third that makes it due.
    pub(crate) fn interval(&self) -> Duration {
        (self.lease / 9).min(Duration::from_secs(5))
    }

    /// The leases of which a third is over, or that have ended; those of one claim stand together.
    pub(crate) fn due(&self) -> Vec<Key> {
        let soon = crate::clock::now() + self.lease * 2 / 3;
        let held = self.lock();
        let mut due: Vec<_> =
            held.iter().filter(|(_, ends)| *ends.borrow() <= soon).map(|(key, _)| *key).collect();
        due.sort_unstable_by_key(|(id, token)| (*token, *id));
        due
    }

    /// Takes over what became of a renewal that was `asked` for at some time: the database counts from later on, so
    /// ours end no later than its. A lost one ends at once, which cuts off its handler: the row has another owner.
    pub(crate) fn renewed(&self, keys: &[Key], lost: &[Key], asked: Instant) {
        let held = self.lock();
        for key in keys {
            let ends = if lost.contains(key) { crate::clock::now() } else { asked + self.lease };
            if let Some(sender) = held.get(key) {
                sender.send_replace(ends);
            }
        }
    }
}

/// A row that runs.
#[derive(Debug)]
pub(crate) struct Held {
    leases: Leases,
    key: Key,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leases.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(90);

    #[test]
    fn a_lease_is_due_once_a_third_of_it_is_over_and_gone_when_its_row_ended() {
        let leases = Leases::new(LEASE);
        let now = crate::clock::now();
        let key = |id| (RowId(id), LeaseToken::new());
        let (fresh, old) = (key(1), key(2));
        let (sender, _fresh_ends) = watch::channel(now + LEASE);
        let _fresh = leases.hold(fresh, sender);
        let (sender, ends) = watch::channel(now + LEASE / 2);
        let held = leases.hold(old, sender);
        assert_eq!(leases.due(), [old]);
        leases.renewed(&[old], &[], now);
        assert_eq!((leases.due(), *ends.borrow()), (vec![], now + LEASE));
        leases.renewed(&[old], &[old], now);
        assert!(*ends.borrow() <= crate::clock::now(), "a lost lease has ended");
        drop(held);
        assert_eq!(leases.due(), []);
    }
}

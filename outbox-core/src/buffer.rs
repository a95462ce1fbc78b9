//! Where raised events wait for the save of their aggregate.

use crate::{
    envelope::{Envelope, MessageId, Stamp},
    event::{EventError, Ordering as EventOrder, OutboxEvent},
    fate::Fate,
};
use std::{
    fmt, mem,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

type Lazy<M> = Box<dyn Fn(&M) -> Result<Envelope, EventError> + Send + Sync>;

enum Entry<M> {
    Ready(Box<Result<Envelope, EventError>>),
    Lazy(MessageId, EventOrder, Lazy<M>),
}

/// What is known of the last save that used a buffer.
#[derive(Clone, Debug, Default)]
pub enum LastSave {
    /// Nothing is in doubt: never saved, failed for certain, or committed for certain.
    #[default]
    Settled,
    /// COMMIT was sent and its answer never came, or was an error: these messages are stored or not.
    CommitUnknown(Vec<MessageId>),
    /// The rows were written inside a transaction of the caller's, which may have rolled back since.
    Joined {
        /// The messages; none when the save had no events.
        ids: Vec<MessageId>,
        /// The end of that transaction, where it is one that tells.
        fate: Option<Fate>,
    },
    /// A save found its messages stored already; the aggregate in memory is stale.
    AlreadyStored {
        /// One of them.
        message_id: MessageId,
    },
}

/// The events that an aggregate has raised and that are not stored yet.
///
/// `M` is the model that a save gives back, which [`raise_with`](Self::raise_with) shows to its closure. The buffer is
/// not `Clone`: a copy would lose events or send them twice. Dropping it with unsaved events logs a warning and counts
/// them in [`dropped_events`], because an early return after a business refusal is legitimate.
pub struct EventBuffer<M> {
    pending: Vec<Entry<M>>,
    last_save: LastSave,
    /// A save was tried and failed: the caller has an error in hand, so a drop is no surprise.
    refused: bool,
}

impl<M> EventBuffer<M> {
    /// Raises an event: identity, time and payload are fixed now, and so is its cause when a handler raises it (see
    /// [`Envelope`]).
    ///
    /// An event that cannot be stored (see [`EventError`]) makes the next save fail; use
    /// [`try_raise`](Self::try_raise) to learn it here.
    // By value: an event that was raised is not the caller's any more.
    #[allow(clippy::needless_pass_by_value)]
    pub fn raise<E: OutboxEvent>(&mut self, event: E) {
        self.push(Entry::Ready(Box::new(Envelope::new(&event))));
    }

    /// Raises an event and says at once when it cannot be stored; the buffer is then unchanged.
    ///
    /// # Errors
    ///
    /// As [`Envelope::new`].
    #[allow(clippy::needless_pass_by_value)]
    pub fn try_raise<E: OutboxEvent>(&mut self, event: E) -> Result<MessageId, EventError> {
        let envelope = Envelope::new(&event)?;
        let id = envelope.message_id;
        self.push(Entry::Ready(Box::new(Ok(envelope))));
        Ok(id)
    }

    /// Raises an event that needs what the database generates: the closure sees the saved model, inside the
    /// transaction. Identity, time and cause are fixed now. The closure runs again when a failed save is tried again.
    pub fn raise_with<E: OutboxEvent>(
        &mut self,
        event: impl Fn(&M) -> E + Send + Sync + 'static,
    ) -> MessageId {
        let stamp = Stamp::now();
        let message_id = stamp.message_id;
        let lazy = Box::new(move |saved: &M| Envelope::raised(stamp.clone(), &event(saved)));
        self.push(Entry::Lazy(message_id, E::ORDERING, lazy));
        message_id
    }

    fn push(&mut self, entry: Entry<M>) {
        self.pending.push(entry);
        self.refused = false;
    }

    /// How many events are waiting.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether none is waiting.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Forgets the waiting events on purpose; no warning follows.
    pub fn discard(&mut self) {
        self.pending.clear();
    }

    /// The waiting events as envelopes, in the order in which they were raised. The buffer keeps them.
    ///
    /// # Errors
    ///
    /// The first event that cannot be stored.
    pub fn resolve(&self, saved: &M) -> Result<Vec<Envelope>, EventError> {
        let resolve = |entry: &Entry<M>| match entry {
            Entry::Ready(envelope) => (**envelope).clone(),
            Entry::Lazy(_, _, event) => event(saved),
        };
        self.pending.iter().map(resolve).collect()
    }

    /// The waiting events, where none of them needs the saved model.
    #[cfg(feature = "testing")]
    pub(crate) fn ready(&self) -> Option<Result<Vec<Envelope>, EventError>> {
        let ready = |entry: &Entry<M>| match entry {
            Entry::Ready(envelope) => Some((**envelope).clone()),
            Entry::Lazy(..) => None,
        };
        self.pending.iter().map(ready).collect()
    }

    /// The first event that was refused when it was raised: no save can succeed with it.
    ///
    /// # Errors
    ///
    /// That event's error.
    pub fn refusal(&self) -> Result<(), EventError> {
        self.pending.iter().try_for_each(|entry| match entry {
            Entry::Ready(envelope) => envelope.as_ref().as_ref().map(drop).map_err(EventError::clone),
            Entry::Lazy(..) => Ok(()),
        })
    }

    fn ids(&self) -> Vec<MessageId> {
        let id = |entry: &Entry<M>| match entry {
            Entry::Ready(envelope) => envelope.as_ref().as_ref().ok().map(|envelope| envelope.message_id),
            Entry::Lazy(id, ..) => Some(*id),
        };
        self.pending.iter().filter_map(id).collect()
    }

    /// Whether this message is one of the waiting events.
    #[doc(hidden)]
    pub fn holds(&self, message_id: MessageId) -> bool {
        self.ids().contains(&message_id)
    }

    /// Whether one of the waiting events keeps the order of its aggregate.
    pub fn has_ordered(&self) -> bool {
        self.pending.iter().any(|entry| match entry {
            Entry::Ready(envelope) => envelope.as_ref().as_ref().is_ok_and(Envelope::is_ordered_by_aggregate),
            Entry::Lazy(_, ordering, _) => *ordering == EventOrder::Aggregate,
        })
    }

    /// What is known of the last save.
    pub fn last_save(&self) -> &LastSave {
        &self.last_save
    }

    /// COMMIT is about to be sent: until an answer comes, the messages are stored or not.
    #[doc(hidden)]
    pub fn commit_sent(&mut self) {
        let ids = self.ids();
        if !ids.is_empty() {
            self.last_save = LastSave::CommitUnknown(ids);
        }
    }

    /// The save is complete, and committed.
    #[doc(hidden)]
    pub fn saved(&mut self) {
        self.last_save = LastSave::Settled;
        self.pending.clear();
        self.refused = false;
    }

    /// The save is complete, inside a transaction whose commit is not its own. `fate` is its end, where it tells.
    #[doc(hidden)]
    pub fn saved_within(&mut self, fate: Option<Fate>) {
        let ids = self.ids();
        let before = mem::take(&mut self.last_save);
        self.saved();
        self.last_save = match before {
            _ if fate.is_some() || !ids.is_empty() => LastSave::Joined { ids, fate },
            // Nothing new to look for, so what was in doubt stays in doubt.
            LastSave::Joined { .. } => before,
            _ => LastSave::Settled,
        };
    }

    /// The save failed and everything is kept for another try.
    #[doc(hidden)]
    pub fn save_failed(&mut self) {
        self.refused = true;
    }

    /// The messages turned out to be stored by an earlier save.
    #[doc(hidden)]
    pub fn already_stored(&mut self, message_id: MessageId) {
        self.last_save = LastSave::AlreadyStored { message_id };
        self.refused = true;
    }
}

impl<M> Default for EventBuffer<M> {
    fn default() -> Self {
        Self { pending: Vec::new(), last_save: LastSave::Settled, refused: false }
    }
}

impl<M> fmt::Debug for EventBuffer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBuffer")
            .field("pending", &self.pending.len())
            .field("last_save", &self.last_save)
            .finish_non_exhaustive()
    }
}

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many raised events this process has dropped without saving or discarding them.
pub fn dropped_events() -> u64 {
    DROPPED.load(Relaxed)
}

impl<M> Drop for EventBuffer<M> {
    fn drop(&mut self) {
        if self.pending.is_empty() || self.refused || std::thread::panicking() {
            return;
        }
        let events = self.pending.len();
        DROPPED.fetch_add(events as u64, Relaxed);
        tracing::warn!(
            events,
            model = std::any::type_name::<M>(),
            "raised events were dropped without being saved; save the aggregate, or call discard_events()"
        );
    }
}

//! What an aggregate has raised.

use crate::{buffer::EventBuffer, envelope::Envelope, event::OutboxEvent};
use std::fmt;

/// The events that wait in a buffer, in the order in which they were raised. The buffer keeps them.
///
/// ```
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "orders.order-placed", version = 1, ordering = none)]
/// # struct OrderPlaced { order_id: i32 }
/// use outbox_core::{EventBuffer, testing::Raised};
///
/// struct Order { id: i32 } // the model that a save gives back
/// let mut events = EventBuffer::<Order>::default();
/// events.raise_with(|saved| OrderPlaced { order_id: saved.id });
///
/// assert_eq!(Raised::of(&events, &Order { id: 7 }).only::<OrderPlaced>(), OrderPlaced { order_id: 7 });
/// # events.discard();
/// ```
#[derive(Clone, PartialEq)]
pub struct Raised(Vec<Envelope>);

impl Raised {
    /// The events of a buffer, those of `raise_with` with this saved model.
    ///
    /// # Panics
    ///
    /// When one of them could not be stored: the save would fail as well.
    pub fn of<M>(events: &EventBuffer<M>, saved: &M) -> Self {
        Self::resolved(events.resolve(saved))
    }

    /// The events of a buffer that has none of `raise_with`.
    ///
    /// # Panics
    ///
    /// When it has one of those, which needs [`of`](Self::of); and as `of`.
    pub fn without_model<M>(events: &EventBuffer<M>) -> Self {
        let ready = events.ready().unwrap_or_else(|| {
            panic!("an event was raised with `raise_with`, which needs the saved model: use `Raised::of`")
        });
        Self::resolved(ready)
    }

    fn resolved(events: Result<Vec<Envelope>, crate::EventError>) -> Self {
        Self(events.unwrap_or_else(|error| panic!("a raised event cannot be stored: {error}")))
    }

    /// All events of a type.
    ///
    /// # Panics
    ///
    /// When one of them cannot be read back.
    pub fn all<E: OutboxEvent>(&self) -> Vec<E> {
        self.0.iter().filter(|envelope| is::<E>(envelope)).map(read).collect()
    }

    /// The event of a type of which there is one; there may be others of other types.
    ///
    /// # Panics
    ///
    /// When there is none, or more than one.
    #[track_caller]
    pub fn one<E: OutboxEvent>(&self) -> E {
        let mut all = self.all::<E>();
        assert!(
            all.len() == 1,
            "{} events of {} were raised instead of one, among {self}",
            all.len(),
            E::LOGICAL_NAME
        );
        all.remove(0)
    }

    /// The only event that was raised.
    ///
    /// # Panics
    ///
    /// When there is none, another, or more than one.
    #[track_caller]
    pub fn only<E: OutboxEvent>(&self) -> E {
        assert!(
            self.0.len() == 1,
            "{} was to be raised and nothing else, but these were: {self}",
            E::LOGICAL_NAME
        );
        self.one()
    }

    /// Checks that nothing was raised.
    ///
    /// # Panics
    ///
    /// When something was.
    #[track_caller]
    pub fn assert_none(&self) {
        assert!(self.0.is_empty(), "nothing was to be raised, but these were: {self}");
    }

    /// The events with all that was fixed when they were raised.
    pub fn envelopes(&self) -> &[Envelope] {
        &self.0
    }
}

pub(super) fn is<E: OutboxEvent>(envelope: &Envelope) -> bool {
    let is_named = envelope.event_type == E::EVENT_TYPE || E::ALIASES.contains(&&*envelope.event_type);
    is_named && E::reads(envelope.event_version)
}

pub(super) fn read<E: OutboxEvent>(envelope: &Envelope) -> E {
    E::decode(envelope.event_version, &envelope.payload)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", envelope.logical_name()))
}

/// The events, one a line.
impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no events at all");
        }
        write!(f, "{} events", self.0.len())?;
        for envelope in &self.0 {
            write!(f, "\n  {} {}", envelope.logical_name(), envelope.payload)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

//! One aggregate within a save.

use super::{
    Aggregate, Operation,
    key::key_text,
    prepare::prepare,
    root::is_loaded,
    run::{News, Parts, Written},
};
use crate::error::SaveError;
use outbox_core::{Envelope, MessageId};
use sea_orm::{ConnectionTrait, IntoActiveModel, TransactionTrait};

/// An aggregate and what is to be done with it.
pub(super) struct Part<'a, A: Aggregate> {
    aggregate: &'a mut A,
    operation: Operation,
    /// What SeaORM gave back; becomes the root when all is well.
    saved: Option<A::Model>,
}

impl<'a, A: Aggregate> Part<'a, A> {
    pub(super) fn new(aggregate: &'a mut A, operation: Operation) -> Self {
        Self { aggregate, operation, saved: None }
    }
}

impl<A: Aggregate, T: ConnectionTrait + TransactionTrait> Parts<T> for Part<'_, A> {
    async fn write(&mut self, tx: &T) -> Result<Vec<Written>, SaveError> {
        let (root, events) = A::parts(self.aggregate);
        let operation = match self.operation {
            // SeaORM's own save asks whether the key is set, which is wrong for keys that the client makes.
            Operation::Save if !is_loaded(root) => Operation::Insert,
            operation => operation,
        };
        // On a copy: the root survives a failure.
        let mut root = root.clone();
        prepare::<A>(tx, &mut root, events, operation).await?;
        let saved = A::write_root(root, tx, operation).await?;
        let mut written = Vec::new();
        if !events.is_empty() {
            let aggregate_id = key_text::<A>(&saved)?;
            let version = A::version(&saved);
            let of_aggregate = |envelope: Envelope| {
                envelope.with_aggregate(A::AGGREGATE_TYPE, &aggregate_id).with_aggregate_version(version)
            };
            let envelopes = events.resolve(&saved)?.into_iter().map(of_aggregate).collect();
            written.push(Written { tables: A::TABLES, envelopes });
        }
        // What was deleted stays in memory as it was.
        self.saved = (operation != Operation::Delete).then_some(saved);
        Ok(written)
    }

    fn tell(&mut self, news: &News<'_>) {
        let (root, events) = A::parts_mut(self.aggregate);
        match news {
            News::CommitSent => return events.commit_sent(),
            News::Failed(SaveError::AlreadyStored { message_id, .. }) if events.holds(*message_id) => {
                return events.already_stored(*message_id);
            }
            News::Failed(_) => return events.save_failed(),
            News::Committed => events.saved(),
            News::Joined(fate) => events.saved_within(fate.clone()),
        }
        if let Some(saved) = self.saved.take() {
            *root = saved.into_active_model();
        }
    }

    fn owner(&self, message_id: MessageId) -> Option<&'static str> {
        A::parts(self.aggregate).1.holds(message_id).then_some(A::AGGREGATE_TYPE)
    }
}

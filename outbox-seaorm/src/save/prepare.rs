//! What is checked before anything is written.

use super::{Aggregate, Operation, root::require_root, version::advance};
use crate::{error::SaveError, insert::stored};
use outbox_core::{
    EventBuffer, MessageId,
    buffer::LastSave,
    fate::{End, Fate},
};
use sea_orm::ConnectionTrait;

/// Checks what can be checked before anything is written, locks the root where SeaORM's save will not, and counts its
/// version where it has one.
pub(super) async fn prepare<A: Aggregate>(
    tx: &impl ConnectionTrait,
    root: &mut A::Root,
    events: &EventBuffer<A::Model>,
    operation: Operation,
) -> Result<(), SaveError> {
    events.refusal()?;
    match events.last_save() {
        LastSave::Settled => {}
        LastSave::AlreadyStored { message_id } => return Err(already_stored::<A>(*message_id)),
        LastSave::CommitUnknown(ids) => {
            if let Some(id) = stored(tx, A::TABLES, ids).await?.first() {
                return Err(already_stored::<A>(*id));
            }
        }
        LastSave::Joined { ids, fate } => {
            let is_undone = match fate.as_ref().map(Fate::end) {
                Some(End::Committed) => false,
                Some(End::RolledBack) => true,
                // The transaction is still open, or cannot tell: its messages can.
                _ => stored(tx, A::TABLES, ids).await?.len() < ids.len(),
            };
            if is_undone {
                return Err(SaveError::RolledBack { aggregate_type: A::AGGREGATE_TYPE });
            }
        }
    }
    match A::VERSION_COLUMN {
        // The look at the stored version locks the root as well.
        Some(column) => advance::<A>(tx, root, column, operation).await,
        None if !events.is_empty() => require_root::<A>(tx, root, operation, events.has_ordered()).await,
        None => Ok(()),
    }
}

fn already_stored<A: Aggregate>(message_id: MessageId) -> SaveError {
    SaveError::AlreadyStored { aggregate_type: A::AGGREGATE_TYPE, message_id }
}

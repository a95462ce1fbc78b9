//! A few more tries where another transaction was in the way.

use outbox_core::{StoreError, store::StoreErrorKind};
use std::{fmt::Display, future::Future, time::Duration};

const TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(10);

/// Runs an operation again while it meets deadlocks, serialisation failures or a busy database. Everything that goes
/// through here is one transaction, guarded by row states and tokens, so it may be repeated.
pub(super) async fn retried<T, F>(operation: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    again(operation, is_conflict).await
}

pub(super) fn is_conflict(error: &StoreError) -> bool {
    error.kind() == StoreErrorKind::Conflict
}

/// As [`retried`], for errors of other kinds.
pub(crate) async fn again<T, E, F>(
    mut operation: impl FnMut() -> F,
    is_conflict: impl Fn(&E) -> bool,
) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    for attempt in 1.. {
        match operation().await {
            Err(error) if is_conflict(&error) && attempt < TRIES => {
                tracing::debug!(attempt, %error, "another transaction was in the way");
                tokio::time::sleep(FIRST_WAIT.saturating_mul(1 << attempt).mul_f64(fastrand::f64())).await;
            }
            ended => return ended,
        }
    }
    unreachable!("the last try returns")
}

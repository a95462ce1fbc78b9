//! Places at which a test crashes a relay.

use super::Inspect;
use crate::{
    envelope::MessageId,
    handler::{Call, Run},
    row::OutboxRow,
    store::{
        Announcement, ClaimRequest, Claimed, Control, Mark, MarkReport, OrderedClaim, OrderedRequest,
        OutboxStore, Purge, Purged, Renewal, Renewed, StoreError, TakeOver, TakenOver,
    },
};
use chrono::{DateTime, Utc};
use std::{
    future::pending,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Notify;

/// A place in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultPoint {
    /// Rows are claimed, and no handler has run.
    AfterClaim,
    /// A handler has succeeded and, when it had a transaction of its own, that is committed; its relay does not know yet.
    AfterHandler,
    /// All handlers of the pass have run, and nothing is marked.
    BeforeMark,
    /// Marks are written, and nobody heard of it.
    AfterMark,
}

/// The place that is armed, if any.
#[derive(Debug, Default)]
pub(super) struct Faults {
    armed: Mutex<Option<FaultPoint>>,
    crash: Notify,
}

impl Faults {
    pub(super) fn arm(&self, point: Option<FaultPoint>) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = point;
    }

    /// Goes on, unless it is here that the relay crashes: then nothing goes on.
    async fn reached(&self, point: FaultPoint) {
        let crashes =
            self.armed.lock().unwrap_or_else(PoisonError::into_inner).take_if(|armed| *armed == point);
        if crashes.is_some() {
            self.crash.notify_one();
            pending::<()>().await;
        }
    }

    /// Ready when a place was reached at which the relay crashes.
    pub(super) async fn crashed(&self) {
        self.crash.notified().await;
    }
}

/// A handler after which the relay may crash.
pub(super) fn watched(run: Arc<Run>, faults: Arc<Faults>) -> Arc<Run> {
    Arc::new(move |call: &Call| {
        let (handler, faults) = (run(call)?, faults.clone());
        Ok(Box::pin(async move {
            handler.await?;
            faults.reached(FaultPoint::AfterHandler).await;
            Ok(())
        }))
    })
}

/// A store around which the relay may crash.
pub(super) struct Watched<S> {
    pub(super) store: Arc<S>,
    pub(super) faults: Arc<Faults>,
}

impl<S: Inspect> OutboxStore for Watched<S> {
    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    async fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
        let claimed = self.store.claim(request).await?;
        self.claimed(!claimed.rows.is_empty()).await;
        Ok(claimed)
    }

    async fn claim_ordered(&self, request: &OrderedRequest<'_>) -> Result<OrderedClaim, StoreError> {
        let claimed = self.store.claim_ordered(request).await?;
        self.claimed(!claimed.claimed.rows.is_empty()).await;
        Ok(claimed)
    }

    async fn take_over(&self, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
        let taken = self.store.take_over(request).await?;
        self.claimed(taken.row.is_some()).await;
        Ok(taken)
    }

    async fn has_expired(&self, request: &TakeOver<'_>) -> Result<bool, StoreError> {
        self.store.has_expired(request).await
    }

    async fn mark(&self, marks: &[Mark], now: Option<DateTime<Utc>>) -> Result<MarkReport, StoreError> {
        self.faults.reached(FaultPoint::BeforeMark).await;
        let report = self.store.mark(marks, now).await?;
        self.faults.reached(FaultPoint::AfterMark).await;
        Ok(report)
    }

    async fn renew(&self, renewal: &Renewal<'_>) -> Result<Renewed, StoreError> {
        self.store.renew(renewal).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.store.purge(purge).await
    }

    async fn announce(&self, announcement: &Announcement<'_>) -> Result<(), StoreError> {
        self.store.announce(announcement).await
    }

    async fn withdraw(&self, relay: &str) -> Result<(), StoreError> {
        self.store.withdraw(relay).await
    }

    async fn control(&self, now: Option<DateTime<Utc>>) -> Result<Control, StoreError> {
        self.store.control(now).await
    }

    async fn find(&self, id: MessageId) -> Result<Option<OutboxRow>, StoreError> {
        self.store.find(id).await
    }
}

impl<S> Watched<S> {
    async fn claimed(&self, any: bool) {
        if any {
            self.faults.reached(FaultPoint::AfterClaim).await;
        }
    }
}

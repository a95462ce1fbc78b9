//! A store between a relay and another store, which can refuse what it is asked, or lose the answer.

use crate::conformance::Time;
use outbox_core::{
    MessageId, OutboxRow, OutboxStore, StoreError,
    store::{
        Announcement, ClaimRequest, Claimed, Control, Mark, MarkReport, OrderedClaim, OrderedRequest, Purge,
        Purged, Renewal, Renewed, StoreErrorKind, TakeOver, TakenOver,
    },
};
use std::{fmt, sync::Arc, time::Duration};

/// What a store is asked.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Named after the methods.
pub enum Asked<'a> {
    Check,
    Claim,
    /// The claim was made.
    Claimed,
    ClaimOrdered,
    /// The claim of ordered rows was made.
    ClaimedOrdered,
    TakeOver,
    /// The take-over was made.
    TakenOver,
    HasExpired,
    Mark(&'a [Mark]),
    /// The marks were written.
    Marked(&'a [Mark]),
    Renew,
    Purge,
    Announce,
    Control,
}

impl Asked<'_> {
    /// Its name, as in `claimed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Claim => "claim",
            Self::Claimed => "claimed",
            Self::ClaimOrdered => "claim-ordered",
            Self::ClaimedOrdered => "claimed-ordered",
            Self::TakeOver => "take-over",
            Self::TakenOver => "taken-over",
            Self::HasExpired => "has-expired",
            Self::Mark(_) => "mark",
            Self::Marked(_) => "marked",
            Self::Renew => "renew",
            Self::Purge => "purge",
            Self::Announce => "announce",
            Self::Control => "control",
        }
    }
}

/// Hands everything on, unless the judge refuses it.
#[derive(Clone)]
pub struct Interposed<S> {
    store: S,
    judge: Arc<dyn Fn(Asked<'_>) -> Option<StoreErrorKind> + Send + Sync>,
    claims_take: Duration,
}

impl<S> Interposed<S> {
    /// The judge says with which kind of error something fails.
    pub fn new(
        store: S,
        judge: impl Fn(Asked<'_>) -> Option<StoreErrorKind> + Send + Sync + 'static,
    ) -> Self {
        Self { store, judge: Arc::new(judge), claims_take: Duration::ZERO }
    }

    /// Answers of claims are so long on their way.
    pub fn with_slow_claims(store: S, claims_take: Duration) -> Self {
        Self { store, judge: Arc::new(|_| None), claims_take }
    }

    fn ask(&self, asked: Asked<'_>) -> Result<&S, StoreError> {
        (self.judge)(asked).map_or(Ok(&self.store), |kind| Err(StoreError::new(kind, "refused")))
    }
}

impl<S> fmt::Debug for Interposed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interposed")
    }
}

impl<S: OutboxStore> OutboxStore for Interposed<S> {
    async fn check(&self) -> Result<(), StoreError> {
        self.ask(Asked::Check)?.check().await
    }

    async fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
        let claimed = self.ask(Asked::Claim)?.claim(request).await?;
        self.ask(Asked::Claimed)?;
        tokio::time::sleep(self.claims_take).await;
        Ok(claimed)
    }

    fn claims_at_once(&self) -> bool {
        self.store.claims_at_once()
    }

    async fn claim_ordered(&self, request: &OrderedRequest<'_>) -> Result<OrderedClaim, StoreError> {
        let claimed = self.ask(Asked::ClaimOrdered)?.claim_ordered(request).await?;
        self.ask(Asked::ClaimedOrdered)?;
        tokio::time::sleep(self.claims_take).await;
        Ok(claimed)
    }

    async fn take_over(&self, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
        let taken = self.ask(Asked::TakeOver)?.take_over(request).await?;
        self.ask(Asked::TakenOver)?;
        tokio::time::sleep(self.claims_take).await;
        Ok(taken)
    }

    async fn has_expired(&self, request: &TakeOver<'_>) -> Result<bool, StoreError> {
        self.ask(Asked::HasExpired)?.has_expired(request).await
    }

    async fn mark(&self, marks: &[Mark], now: Option<Time>) -> Result<MarkReport, StoreError> {
        let report = self.ask(Asked::Mark(marks))?.mark(marks, now).await?;
        self.ask(Asked::Marked(marks))?;
        Ok(report)
    }

    async fn renew(&self, renewal: &Renewal<'_>) -> Result<Renewed, StoreError> {
        self.ask(Asked::Renew)?.renew(renewal).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.ask(Asked::Purge)?.purge(purge).await
    }

    async fn announce(&self, announcement: &Announcement<'_>) -> Result<(), StoreError> {
        self.ask(Asked::Announce)?.announce(announcement).await
    }

    async fn withdraw(&self, relay: &str) -> Result<(), StoreError> {
        self.store.withdraw(relay).await
    }

    async fn control(&self, now: Option<Time>) -> Result<Control, StoreError> {
        self.ask(Asked::Control)?.control(now).await
    }

    async fn find(&self, id: MessageId) -> Result<Option<OutboxRow>, StoreError> {
        self.store.find(id).await
    }
}

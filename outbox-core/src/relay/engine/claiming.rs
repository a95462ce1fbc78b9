//! What a relay claims: probes first, then both kinds in turn, and more at once while handlers are faster than claims.

use super::Engine;
use crate::{
    observe::Observed,
    relay::{
        hunger::{Hunger, SIDE_BY_SIDE},
        in_flight::Place,
        pace::Found,
    },
    router::Claimable,
    row::{ClaimedRow, LeaseToken},
    store::{ClaimRequest, Claimed, OrderedClaim, OrderedRequest, OutboxStore, Route, StoreError},
};
use std::collections::HashMap;
use tokio::sync::oneshot;
use tracing::Instrument;

impl<S: OutboxStore> Engine<S> {
    pub(crate) async fn claim(&mut self) -> Found {
        if !self.outage.may_try() {
            return Found::Failure;
        }
        let span = tracing::debug_span!("outbox.claim", relay = self.config.name);
        let found = self.try_claim().instrument(span).await;
        self.noted("claim", found).unwrap_or(Found::Failure)
    }

    pub(super) async fn try_claim(&mut self) -> Result<Found, StoreError> {
        let Claimable { routes, probes } = self.gates.claimable(&self.router);
        // One row tells whether what was down is up again; the others follow then.
        if !probes.is_empty() {
            if self.claim_both_kinds(1, &probes).await? > 0 {
                return Ok(Found::Full);
            }
            self.gates.no_probe(&self.router, &probes);
        }
        if routes.is_empty() {
            return Ok(Found::Nothing);
        }
        let room = self.room();
        let claimed = self.claim_both_kinds(room, &routes).await?;
        self.expired.claimed();
        Ok(match claimed {
            claimed if claimed >= room || self.order.has_more() => Found::Full,
            0 => Found::Nothing,
            _ => Found::Some,
        })
    }

    /// Rows of one claim. While handlers are faster than claims, those that still run are no reason to claim fewer.
    fn room(&self) -> usize {
        let batch = self.config.batch_size as usize;
        let is_starved = self.batches(&self.hunger, self.config.batch_size) > 1;
        if is_starved { batch } else { batch.saturating_sub(self.owned()) }
    }

    /// In turn, so that a backlog of one kind does not hold up the other.
    async fn claim_both_kinds(&mut self, room: usize, routes: &[Route]) -> Result<usize, StoreError> {
        let token = LeaseToken::new();
        let mut claimed = 0;
        for ordered in self.order.both_kinds() {
            let limit = u32::try_from(room.saturating_sub(claimed)).unwrap_or(u32::MAX);
            if limit > 0 {
                claimed += if ordered {
                    self.claim_ordered(token, limit, routes).await?
                } else {
                    self.claim_unordered(token, limit, routes).await?
                };
            }
        }
        Ok(claimed)
    }

    async fn claim_unordered(
        &mut self,
        token: LeaseToken,
        limit: u32,
        routes: &[Route],
    ) -> Result<usize, StoreError> {
        let asked = crate::clock::now();
        if self.batches(&self.hunger, limit) > 1 {
            return self.claim_side_by_side(token, limit, routes).await;
        }
        let claimed = self.store.claim(&self.request(token, limit, routes)).await?;
        // A probe of one row says nothing.
        let is_full = limit > 1 && claimed.rows.len() >= limit as usize;
        self.hunger.answered(is_full, self.in_flight.is_starved(), largest(&claimed));
        Ok(self.take(claimed, token, asked))
    }

    /// Claims side by side, because the handlers of one are done before the next one is answered. They share a token:
    /// rows that one of them claims are none of another's.
    async fn claim_side_by_side(
        &mut self,
        token: LeaseToken,
        limit: u32,
        routes: &[Route],
    ) -> Result<usize, StoreError> {
        let asked = crate::clock::now();
        let limit = limit * self.batches(&self.hunger, limit);
        let request = self.request(token, limit, routes);
        let claim = || self.store.claim(&request);
        let claims: [_; SIDE_BY_SIDE as usize] = tokio::join!(claim(), claim()).into();
        let nothing_runs = self.in_flight.is_starved();
        let (mut count, mut failed) = (0, None);
        for claimed in claims {
            match claimed {
                Ok(claimed) => {
                    let is_full = claimed.rows.len() >= limit as usize;
                    self.hunger.answered(is_full, nothing_runs, largest(&claimed));
                    count += self.take(claimed, token, asked);
                }
                Err(error) => failed = Some(error),
            }
        }
        let Some(error) = failed else { return Ok(count) };
        self.hunger.failed();
        if count == 0 {
            return Err(error);
        }
        // What the other one has claimed is handled all the same, and the next claim tells whether the store fails.
        self.noted("claim", Err::<(), _>(error));
        Ok(count)
    }

    async fn claim_ordered(
        &mut self,
        token: LeaseToken,
        limit: u32,
        routes: &[Route],
    ) -> Result<usize, StoreError> {
        let asked = crate::clock::now();
        // Side by side they would wait for each other's lanes.
        let claim = self.request(token, limit * self.batches(&self.ordered_hunger, limit), routes);
        let request = OrderedRequest { claim, after: self.order.after() };
        let answer = self.store.claim_ordered(&request).await;
        let OrderedClaim { claimed, next, expired } = answer.inspect_err(|_| self.ordered_hunger.failed())?;
        self.order.claimed(next, expired);
        // Of few keys some are still in flight, so more than a batch is full; and less says nothing while marks are not
        // written, for which keys wait.
        let is_full = limit > 1 && claimed.rows.len() >= limit as usize;
        if is_full || self.marks.is_empty() {
            self.ordered_hunger.answered(is_full, self.in_flight.is_starved(), largest(&claimed));
        }
        Ok(self.take(claimed, token, asked))
    }

    pub(super) fn batches(&self, hunger: &Hunger, limit: u32) -> u32 {
        if limit > 1 && self.store.claims_at_once() { hunger.batches(limit) } else { 1 }
    }

    /// Rows of one ordering key run one after the other, as long as each is dispatched.
    fn take(&mut self, claimed: Claimed, token: LeaseToken, asked: std::time::Instant) -> usize {
        let Claimed { rows, unreadable } = claimed;
        let count = rows.len() + unreadable.len();
        self.observers.tell(&Observed::Claimed { rows: count as u64, took: asked.elapsed() });
        self.report.claimed += count as u64;
        for row in &unreadable {
            self.fail_unreadable(row, token);
        }
        let mut last_of_key = HashMap::new();
        for row in rows {
            let mut place = Place::default();
            if let Some(key) = &row.envelope.ordering_key {
                let (next, done) = oneshot::channel();
                place = Place { previous: last_of_key.insert(key.clone(), done), next: Some(next) };
            }
            self.start(row, token, asked, place);
        }
        count
    }

    pub(super) fn request<'a>(
        &'a self,
        token: LeaseToken,
        limit: u32,
        routes: &'a [Route],
    ) -> ClaimRequest<'a> {
        ClaimRequest {
            claimed_by: &self.config.name,
            token,
            lease: self.config.lease,
            limit,
            routes,
            proceed: self.router.proceed(),
            now: self.now,
        }
    }
}

/// Bytes of the largest payload with its headers.
fn largest(claimed: &Claimed) -> usize {
    let bytes = |row: &ClaimedRow| {
        let headers = row.envelope.headers.iter().map(|(name, value)| name.len() + value.len());
        row.envelope.payload.len() + headers.sum::<usize>()
    };
    claimed.rows.iter().map(bytes).max().unwrap_or(0)
}

//! The parts of a pass: claim, run, collect, mark. The loop that orders them is in the parent module.

mod claiming;

use super::{
    config::RelayConfig,
    expired::Expired,
    health::RelayHealth,
    hunger::{Hunger, SIDE_BY_SIDE},
    in_flight::{Ended, Ending, InFlight, Place},
    keeper::Keeper,
    log::{log_failure, log_transition},
    marks::{Marks, Written},
    order::Order,
    outage::Outage,
    report::PassReport,
};
use crate::{
    decide::{Transition, decide, decide_unreadable},
    observe::{Observed, Observers, RowEnd},
    router::{Gates, Router},
    row::{ClaimedRow, LeaseToken, UnreadableRow},
    store::{Mark, OutboxStore, Route, StoreError, TakeOver},
};
use chrono::{DateTime, Utc};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long a stopping relay tries to write its last marks; the leases free the rows otherwise.
const LAST_FLUSH: Duration = Duration::from_secs(5);

pub(crate) struct Engine<S> {
    store: Arc<S>,
    router: Router,
    config: RelayConfig,
    in_flight: InFlight,
    marks: Marks<S>,
    expired: Expired,
    order: Order,
    /// Of unordered and of ordered rows.
    hunger: Hunger,
    ordered_hunger: Hunger,
    gates: Gates,
    outage: Outage,
    health: RelayHealth,
    observers: Observers,
    report: PassReport,
    stopping: bool,
    now: Option<DateTime<Utc>>,
}

impl<S: OutboxStore> Engine<S> {
    /// The engine beside a keeper: they share what they know.
    pub(crate) fn beside(keeper: &Keeper<S>) -> Self {
        let config = keeper.config.clone();
        Self {
            in_flight: InFlight::new(
                &config,
                keeper.leases.clone(),
                keeper.gates.clone(),
                keeper.observers.clone(),
            ),
            observers: keeper.observers.clone(),
            expired: Expired::new(config.lease),
            order: Order::default(),
            hunger: Hunger::unordered(),
            ordered_hunger: Hunger::ordered(),
            store: keeper.store.clone(),
            router: keeper.router.clone(),
            gates: keeper.gates.clone(),
            outage: keeper.outage.clone(),
            health: keeper.health.clone(),
            config,
            marks: Marks::new(keeper.store.clone(), keeper.config.batch_size as usize, keeper.now),
            report: PassReport::default(),
            stopping: false,
            now: keeper.now,
        }
    }

    /// Notes what came of asking the store, and logs an error.
    fn noted<T>(&self, doing: &'static str, result: Result<T, StoreError>) -> Option<T> {
        self.outage.tried(&result);
        self.health.tried(doing, &result);
        let failed = |error: &StoreError| {
            log_failure(doing, error);
            self.observers.tell(&Observed::StoreFailed { doing, error });
        };
        result.inspect_err(failed).ok()
    }

    /// Rows that keep others from being claimed: those that run or wait, and marks that wait to be written.
    fn owned(&self) -> usize {
        self.in_flight.len() + self.marks.waiting()
    }

    /// Whether nothing is left of what was claimed.
    fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.marks.is_empty()
    }

    /// Whether a claim makes sense: there is room for at least half of what is claimed at once, and nothing must run alone.
    fn wants_rows(&self) -> bool {
        let batch = self.config.batch_size;
        let batches = self.batches(&self.hunger, batch);
        let at_once = if batches > 1 { batch * batches * SIDE_BY_SIDE } else { batch };
        self.expired.allows_claims() && self.marks.may_write() && self.owned() * 2 <= at_once as usize
    }

    /// The lease is counted from before the claim was sent, so ours ends no later than the database's.
    fn start(&mut self, row: ClaimedRow, token: LeaseToken, asked: std::time::Instant, place: Place) {
        self.in_flight.start(&self.router, row, token, asked + self.config.lease, place);
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Waits for whatever needs the engine next; `claim_due` counts only while there is room. Cancel safe.
    pub(crate) async fn next_event(&mut self, claim_due: impl Future<Output = ()>) -> Event {
        let (wants_rows, is_running) = (self.wants_rows(), self.is_running());
        let flush_at = self.marks.due().map(|due| self.outage.not_before(due));
        let is_writing = self.marks.is_writing();
        // A row that must run alone waits until nothing else does.
        let look_at = self.expired.look_at(self.is_idle()).filter(|_| !self.stopping);
        let look_at = look_at.map(|due| self.outage.not_before(due));
        tokio::select! {
            biased;
            ended = self.in_flight.next(), if is_running => Event::Ended(ended),
            written = self.marks.next_written(), if is_writing => Event::Written(written),
            () = at(flush_at) => Event::FlushDue,
            () = at(look_at) => Event::LookDue,
            () = claim_due, if wants_rows => Event::ClaimDue,
        }
    }

    async fn next_done(&mut self) {
        let ended = self.in_flight.next().await;
        self.settle(ended);
    }

    pub(crate) fn settle(&mut self, ended: Ended) {
        let Ended { row, token, ending } = ended;
        let of_key = row.envelope.ordering_key.is_some();
        let transition = match ending {
            Ending::Reported(reports) => match decide(&row, &reports, &self.config.retry, fastrand::f64()) {
                Transition::Dispatched if self.config.retention.dispatched.is_none() => Transition::Deleted,
                transition => transition,
            },
            Ending::NotStarted => Transition::Release,
            Ending::TooLate => {
                tracing::warn!(
                    id = row.id.0,
                    message_id = %row.envelope.message_id,
                    "the lease ended before the row could start; raise lease, or lower batch_size"
                );
                // Nobody may have taken it over yet.
                Transition::Release
            }
        };
        log_transition(&row, &transition);
        let end = (!self.observers.is_empty()).then(|| RowEnd::of(&row, &transition));
        self.decided(Mark { id: row.id, token, transition, replay_of: row.replay_of }, end, of_key);
    }

    fn fail_unreadable(&mut self, row: &UnreadableRow, token: LeaseToken) {
        let transition = decide_unreadable(row, &self.config.retry, fastrand::f64());
        tracing::error!(
            id = row.id.0,
            attempt = row.attempts,
            error = row.error,
            "a claimed row cannot be read"
        );
        let end = (!self.observers.is_empty()).then(|| RowEnd::of_unreadable(row, &transition));
        self.decided(Mark { id: row.id, token, transition, replay_of: None }, end, false);
    }

    fn decided(&mut self, mark: Mark, end: Option<RowEnd>, of_key: bool) {
        self.report.decided(&mark.transition);
        self.marks.push(mark, end, of_key);
    }

    /// Whether marks are to be written without waiting for more.
    pub(crate) fn must_flush(&self) -> bool {
        self.marks.must_write(self.in_flight.is_empty())
    }

    /// Begins to write the marks; what comes of it is an event.
    pub(crate) fn flush(&mut self) {
        if self.outage.may_try() {
            self.marks.write();
        } else {
            self.marks.later();
        }
    }

    /// Returns whether rows that waited for others of their key may be claimed now.
    pub(crate) fn written(&mut self, written: Written) -> bool {
        self.report.lost += written.lost;
        written.ended.iter().for_each(|end| self.observers.tell(&Observed::Ended(end)));
        if written.lost > 0 {
            self.observers.tell(&Observed::LeasesLost { rows: written.lost });
            tracing::warn!(
                rows = written.lost,
                relay = self.config.name,
                "leases were lost before their rows could be marked: another relay owns or has finished them"
            );
        }
        self.noted("mark", written.error.map_or(Ok(()), Err));
        // Some may be written though others could not be.
        written.of_keys
    }

    /// Looks for a row with an expired lease. It runs alone, so while others run it is only noted that one waits.
    pub(crate) async fn look_for_expired(&mut self) {
        if self.expired.ended_alone() {
            return;
        }
        if !self.outage.may_try() {
            return self.expired.failed();
        }
        let looked = if self.is_idle() {
            self.take_over(true).await.map(drop)
        } else if self.expired.is_out_of_patience() {
            self.take_over(false).await.map(drop)
        } else {
            self.note_expired().await
        };
        if self.noted("take over", looked).is_none() {
            self.expired.failed();
        }
    }

    async fn note_expired(&mut self) -> Result<(), StoreError> {
        let routes = self.gates.callable(&self.router);
        let request = self.take_over_request(LeaseToken::new(), &routes, true);
        let waiting = self.store.has_expired(&request).await?;
        self.expired.noted(waiting);
        Ok(())
    }

    fn take_over_request<'a>(&'a self, token: LeaseToken, routes: &'a [Route], alone: bool) -> TakeOver<'a> {
        TakeOver {
            alone,
            claim: self.request(token, 1, routes),
            keys: self.order.expired(),
            max_attempts: self.config.retry.max_attempts,
        }
    }

    /// Takes over one row, to run `alone` or beside others that take too long.
    async fn take_over(&mut self, alone: bool) -> Result<bool, StoreError> {
        let token = LeaseToken::new();
        let asked = crate::clock::now();
        let routes = self.gates.callable(&self.router);
        let found = self.store.take_over(&self.take_over_request(token, &routes, alone)).await?;
        for letter in &found.buried {
            tracing::error!(
                id = letter.id.0,
                "a row is dead: its relay vanished in the last attempt, with nothing beside it"
            );
            self.observers.tell(&Observed::Ended(&RowEnd::Dead(letter.clone())));
        }
        self.report.dead += found.buried.len() as u64;
        if alone {
            self.expired.took_over(found.row.is_some());
        } else {
            self.expired.ordinary_turn();
        }
        if found.row.is_none() {
            self.order.nothing_expired();
        }
        let rows = u64::from(found.row.is_some() || found.unreadable.is_some());
        self.report.claimed += rows;
        self.report.taken_over += rows;
        if rows > 0 {
            self.observers.tell(&Observed::Claimed { rows, took: asked.elapsed() });
        }
        if let Some(row) = &found.unreadable {
            self.fail_unreadable(row, token);
        }
        let Some(row) = found.row else { return Ok(false) };
        self.start(row, token, asked, Place::default());
        Ok(true)
    }

    /// One pass from claim to mark.
    pub(crate) async fn one_pass(&mut self) -> Result<PassReport, StoreError> {
        let took_over = self.take_over(true).await?;
        self.drain().await?;
        self.try_claim().await?;
        self.drain().await?;
        // Of ordered rows with an expired lease only a claim tells.
        if !took_over && !self.order.expired().is_empty() {
            self.take_over(true).await?;
            self.drain().await?;
        }
        Ok(self.report)
    }

    async fn drain(&mut self) -> Result<(), StoreError> {
        while self.is_running() {
            self.next_done().await;
        }
        self.marks.write();
        while self.marks.is_writing() {
            let mut written = self.marks.next_written().await;
            let error = written.error.take();
            let _ = self.written(written);
            if let Some(error) = error {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends gracefully; see [`Relay::run`](super::Relay::run).
    pub(crate) async fn stop(&mut self, deadline: Instant) {
        self.in_flight.close();
        self.stopping = true;
        while self.is_running() {
            // Marks are not held back meanwhile: what was given back is for others now.
            match timeout_at(deadline, self.next_event(std::future::pending())).await {
                Ok(Event::Ended(ended)) => self.settle(ended),
                Ok(Event::Written(written)) => drop(self.written(written)),
                Ok(Event::FlushDue) => self.flush(),
                Ok(Event::LookDue | Event::ClaimDue) => {}
                Err(_) => {
                    for ended in self.in_flight.interrupt().await {
                        self.settle(ended);
                    }
                }
            }
        }
        let left = self.marks.write_all(Instant::now() + LAST_FLUSH).await;
        if left > 0 {
            tracing::error!("stopped with unwritten marks; their rows come back when their leases expire");
        }
    }
}

/// What needs the engine.
pub(crate) enum Event {
    Ended(Ended),
    /// Some marks were written, or could not be.
    Written(Written),
    FlushDue,
    LookDue,
    ClaimDue,
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

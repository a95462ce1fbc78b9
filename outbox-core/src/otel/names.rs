//! Names, units and labels of all metrics. Dashboards and alerts are built on them, so they do not change lightly.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricInfo {
    /// Its name in OpenTelemetry. Prometheus knows it with `_` for `.`, the unit `s` as `_seconds`, and `_total` behind a
    /// counter.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub meaning: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $unit:literal, [$($label:literal),*], $meaning:literal;)+) => {
        $(pub(super) const $constant: MetricInfo = MetricInfo {
            name: $name, unit: $unit, labels: &[$($label),*], meaning: $meaning,
        };)+

        /// All metrics. Those before `outbox.lag` come from relays, the others from a [`Monitor`](crate::Monitor).
        pub const METRICS: &[MetricInfo] = &[$($constant),+];
    };
}

metrics! {
    WRITTEN = "outbox.written", "{event}", [], "events that this process has written into outboxes";
    CLAIMED = "outbox.claimed", "{row}", [], "rows that were claimed or taken over";
    CLAIM_DURATION = "outbox.claim.duration", "s", [], "time that a claim took";
    ATTEMPTS = "outbox.attempts", "{attempt}", ["event", "handler", "outcome"], "calls of handlers by what came of them: done, or the class of the error";
    HANDLER_DURATION = "outbox.handler.duration", "s", ["event", "handler", "outcome"], "time that a handler took";
    ENDED = "outbox.ended", "{row}", ["event", "end", "class"], "ends of attempts that were written: dispatched, retried, waits, dead, released";
    DELIVERY_DURATION = "outbox.delivery.duration", "s", ["event"], "time from an event's raise to its dispatch, by the clocks of the applications";
    LEASES_LOST = "outbox.leases.lost", "{lease}", [], "leases that were lost before their rows could be marked";
    STORE_FAILURES = "outbox.store.failures", "{failure}", ["doing"], "failures of the database, by what the relay was about to do";
    LAG = "outbox.lag", "s", ["event"], "time that the first due row of an event has waited for a relay; unroutable events are left out";
    ROWS = "outbox.rows", "{row}", ["event", "state"], "unfinished rows: ready, blocked, retrying, scheduled, claimed, expired; counted up to 10,000 an event";
    UNROUTABLE = "outbox.unroutable", "{row}", ["event"], "unfinished rows of events that no live relay reads";
    DEAD_LETTERS = "outbox.dead_letters", "{row}", ["event", "class"], "dead letters that wait for an operator";
    BLOCKED_KEYS = "outbox.blocked_keys", "{key}", ["cause"], "ordering keys that wait: dead, backoff, unroutable";
    BLOCKED_FOLLOWERS = "outbox.blocked_followers", "{row}", [], "rows that wait behind blocked keys";
    RELAYS = "outbox.relays", "{relay}", [], "relays that live";
    PAUSES = "outbox.pauses", "{pause}", [], "things that are paused";
    SIGNALS_AT = "outbox.signals.time", "s", [], "when the monitor looked last, as seconds since 1970 by the database's clock";
}

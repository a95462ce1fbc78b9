//! Instruments, and what is recorded in them.

use super::names::{self, MetricInfo};
use crate::{
    observe::{Observed, RowEnd, written_events},
    row::ErrorClass,
    store::{EventSignals, Signals},
};
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram, Meter, ObservableCounter},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The [metrics](super::METRICS) of an outbox. Clones record into the same instruments.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Instruments>);

#[derive(Debug)]
struct Instruments {
    _written: ObservableCounter<u64>,
    claimed: Counter<u64>,
    claim_duration: Histogram<f64>,
    attempts: Counter<u64>,
    handler_duration: Histogram<f64>,
    ended: Counter<u64>,
    delivery_duration: Histogram<f64>,
    leases_lost: Counter<u64>,
    store_failures: Counter<u64>,
    lag: Gauge<f64>,
    rows: Gauge<u64>,
    unroutable: Gauge<u64>,
    dead_letters: Gauge<u64>,
    blocked_keys: Gauge<u64>,
    blocked_followers: Gauge<u64>,
    relays: Gauge<u64>,
    pauses: Gauge<u64>,
    signals_at: Gauge<f64>,
    seen: Mutex<Seen>,
}

/// What was recorded before: a gauge keeps its last value, so what is gone is recorded as nothing.
#[derive(Debug, Default)]
struct Seen {
    events: BTreeSet<String>,
    dead: BTreeSet<(String, &'static str)>,
}

fn counter(meter: &Meter, info: MetricInfo) -> Counter<u64> {
    meter.u64_counter(info.name).with_unit(info.unit).with_description(info.meaning).build()
}

fn gauge(meter: &Meter, info: MetricInfo) -> Gauge<u64> {
    meter.u64_gauge(info.name).with_unit(info.unit).with_description(info.meaning).build()
}

fn seconds(meter: &Meter, info: MetricInfo) -> Gauge<f64> {
    meter.f64_gauge(info.name).with_unit(info.unit).with_description(info.meaning).build()
}

fn durations(meter: &Meter, info: MetricInfo) -> Histogram<f64> {
    let bounds =
        vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
    let histogram = meter.f64_histogram(info.name).with_unit(info.unit).with_description(info.meaning);
    histogram.with_boundaries(bounds).build()
}

impl Metrics {
    /// Makes the instruments. Once a process is enough.
    pub fn new(meter: &Meter) -> Self {
        let written = meter.u64_observable_counter(names::WRITTEN.name).with_unit(names::WRITTEN.unit);
        let written = written
            .with_description(names::WRITTEN.meaning)
            .with_callback(|observer| observer.observe(written_events(), &[]))
            .build();
        Self(Arc::new(Instruments {
            _written: written,
            claimed: counter(meter, names::CLAIMED),
            claim_duration: durations(meter, names::CLAIM_DURATION),
            attempts: counter(meter, names::ATTEMPTS),
            handler_duration: durations(meter, names::HANDLER_DURATION),
            ended: counter(meter, names::ENDED),
            delivery_duration: durations(meter, names::DELIVERY_DURATION),
            leases_lost: counter(meter, names::LEASES_LOST),
            store_failures: counter(meter, names::STORE_FAILURES),
            lag: seconds(meter, names::LAG),
            rows: gauge(meter, names::ROWS),
            unroutable: gauge(meter, names::UNROUTABLE),
            dead_letters: gauge(meter, names::DEAD_LETTERS),
            blocked_keys: gauge(meter, names::BLOCKED_KEYS),
            blocked_followers: gauge(meter, names::BLOCKED_FOLLOWERS),
            relays: gauge(meter, names::RELAYS),
            pauses: gauge(meter, names::PAUSES),
            signals_at: seconds(meter, names::SIGNALS_AT),
            seen: Mutex::default(),
        }))
    }

    /// What records the work of a relay: `relay.observe(metrics.relay())`.
    pub fn relay(&self) -> impl Fn(&Observed<'_>) + Send + Sync + 'static {
        let instruments = self.0.clone();
        move |observed| instruments.observe(observed)
    }

    /// What records the state of the outbox: `monitor.on_signals(metrics.signals())`.
    pub fn signals(&self) -> impl Fn(&Signals) + Send + Sync + 'static {
        let instruments = self.0.clone();
        move |signals| instruments.signals(signals)
    }
}

impl Instruments {
    fn observe(&self, observed: &Observed<'_>) {
        match *observed {
            Observed::Claimed { rows, took } => {
                self.claimed.add(rows, &[]);
                self.claim_duration.record(took.as_secs_f64(), &[]);
            }
            Observed::Handled { handler, row, took, result } => {
                let outcome = result.map_or_else(ErrorClass::as_str, |()| "done");
                let labels = [
                    KeyValue::new("event", row.envelope.logical_name()),
                    KeyValue::new("handler", handler.to_owned()),
                    KeyValue::new("outcome", outcome),
                ];
                self.attempts.add(1, &labels);
                self.handler_duration.record(took.as_secs_f64(), &labels);
            }
            Observed::Ended(end) => self.ended(end),
            Observed::LeasesLost { rows } => self.leases_lost.add(rows, &[]),
            Observed::StoreFailed { doing, .. } => {
                self.store_failures.add(1, &[KeyValue::new("doing", doing)]);
            }
        }
    }

    fn ended(&self, end: &RowEnd) {
        let unread = || "unreadable".to_owned();
        let (event, end, class) = match end {
            RowEnd::Dispatched { logical_name, age } => {
                self.delivery_duration
                    .record(age.as_secs_f64(), &[KeyValue::new("event", logical_name.clone())]);
                (logical_name.clone(), "dispatched", "")
            }
            RowEnd::Retried { logical_name, class } => {
                (logical_name.clone().unwrap_or_else(unread), "retried", class.as_str())
            }
            RowEnd::Waits { logical_name, class } => (logical_name.clone(), "waits", class.as_str()),
            RowEnd::Dead(letter) => {
                (letter.logical_name().unwrap_or_else(unread), "dead", letter.class.as_str())
            }
            RowEnd::Released { logical_name } => (logical_name.clone(), "released", ""),
        };
        let labels =
            [KeyValue::new("event", event), KeyValue::new("end", end), KeyValue::new("class", class)];
        self.ended.add(1, &labels);
    }

    fn signals(&self, signals: &Signals) {
        let now = Duration::from_millis(u64::try_from(signals.at.timestamp_millis()).unwrap_or(0));
        self.signals_at.record(now.as_secs_f64(), &[]);
        self.relays.record(signals.relays.len() as u64, &[]);
        self.pauses.record(signals.pauses.len() as u64, &[]);
        let blocked = &signals.blocked;
        let causes =
            [("dead", blocked.dead), ("backoff", blocked.backoff), ("unroutable", blocked.unroutable)];
        for (cause, keys) in causes {
            self.blocked_keys.record(keys, &[KeyValue::new("cause", cause)]);
        }
        self.blocked_followers.record(blocked.followers, &[]);
        // Nobody else's code runs under the lock.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut gone, mut dead_gone) = (seen.events.clone(), seen.dead.clone());
        for event in &signals.events {
            let name = event.logical_name();
            gone.remove(&name);
            self.event(&name, event, signals.lag_of(event));
            for (class, count) in &event.dead {
                dead_gone.remove(&(name.clone(), class.as_str()));
                self.dead(&name, class.as_str(), *count);
                seen.dead.insert((name.clone(), class.as_str()));
            }
            seen.events.insert(name);
        }
        for name in gone {
            self.event(&name, &EventSignals::none(String::new(), 0, None), Duration::ZERO);
        }
        for (name, class) in dead_gone {
            self.dead(&name, class, 0);
        }
    }

    fn event(&self, name: &str, event: &EventSignals, lag: Duration) {
        let label = KeyValue::new("event", name.to_owned());
        // Late is what somebody reads and nobody handles.
        let lag = if event.is_read == Some(false) { Duration::ZERO } else { lag };
        self.lag.record(lag.as_secs_f64(), std::slice::from_ref(&label));
        self.unroutable.record(event.unroutable(), std::slice::from_ref(&label));
        let states = [
            ("ready", event.ready),
            ("blocked", event.blocked),
            ("retrying", event.retrying),
            ("scheduled", event.scheduled),
            ("claimed", event.claimed),
            ("expired", event.expired),
        ];
        for (state, rows) in states {
            self.rows.record(rows, &[label.clone(), KeyValue::new("state", state)]);
        }
    }

    fn dead(&self, event: &str, class: &'static str, count: u64) {
        let labels = [KeyValue::new("event", event.to_owned()), KeyValue::new("class", class)];
        self.dead_letters.record(count, &labels);
    }
}

#![allow(clippy::float_cmp)] // Counts, which floats hold exactly.

use opentelemetry::{
    KeyValue,
    metrics::MeterProvider,
    trace::{TraceContextExt, TracerProvider},
};
use opentelemetry_sdk::{
    metrics::{InMemoryMetricExporter, SdkMeterProvider, data},
    trace::{InMemorySpanExporter, SdkTracerProvider},
};
use outbox_core::{
    Envelope, HandlerError, MessageId, Monitor, Relay, Router,
    otel::{METRICS, Metrics, propagate},
    testing::MemoryStore,
};
use outbox_tests::{
    events::{NoteTaken, OrderPlaced, placed},
    running::{Running, fast},
    wait::until,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::sync::oneshot;
use tracing::Instrument;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

/// A provider whose metrics can be looked at.
struct Collected {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Collected {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder().with_periodic_exporter(exporter.clone()).build();
        Self { provider, exporter }
    }

    /// Every metric with its unit, its kind, and its values by labels.
    fn metrics(&self) -> BTreeMap<String, Seen> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let mut all = BTreeMap::new();
        for resource in self.exporter.get_finished_metrics().unwrap() {
            for metric in resource.scope_metrics().flat_map(data::ScopeMetrics::metrics) {
                let seen = Seen { unit: metric.unit().to_owned(), ..seen(metric.data()) };
                all.insert(metric.name().to_owned(), seen);
            }
        }
        all
    }
}

#[derive(Debug, Default)]
struct Seen {
    unit: String,
    is_counter: bool,
    values: BTreeMap<BTreeMap<String, String>, f64>,
}

#[allow(clippy::cast_precision_loss)] // Small counts.
fn seen(data: &data::AggregatedMetrics) -> Seen {
    use data::{AggregatedMetrics, MetricData};
    fn labels<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> BTreeMap<String, String> {
        attributes.map(|label| (label.key.to_string(), label.value.to_string())).collect()
    }
    fn of<T: Copy>(data: &MetricData<T>, number: impl Fn(T) -> f64) -> Seen {
        let mut seen = Seen::default();
        match data {
            MetricData::Gauge(gauge) => {
                seen.values.extend(gauge.data_points().map(|p| (labels(p.attributes()), number(p.value()))));
            }
            MetricData::Sum(sum) => {
                seen.is_counter = sum.is_monotonic();
                seen.values.extend(sum.data_points().map(|p| (labels(p.attributes()), number(p.value()))));
            }
            MetricData::Histogram(histogram) => {
                let points = histogram.data_points();
                seen.values.extend(points.map(|p| (labels(p.attributes()), p.count() as f64)));
            }
            MetricData::ExponentialHistogram(_) => {}
        }
        seen
    }
    match data {
        AggregatedMetrics::F64(data) => of(data, |value| value),
        AggregatedMetrics::U64(data) => of(data, |value| value as f64),
        AggregatedMetrics::I64(data) => of(data, |value| value as f64),
    }
}

impl Seen {
    /// The sum of the values that have this label, or of all.
    fn with(&self, label: Option<(&str, &str)>) -> f64 {
        let matches = |labels: &BTreeMap<String, String>| {
            label.is_none_or(|(key, value)| labels.get(key).is_some_and(|found| found == value))
        };
        self.values.iter().filter(|(labels, _)| matches(labels)).map(|(_, value)| value).sum()
    }
}

/// The names under which Prometheus knows a metric.
fn in_prometheus(name: &str, seen: &Seen) -> String {
    let unit = if seen.unit == "s" { "_seconds" } else { "" };
    let total = if seen.is_counter { "_total" } else { "" };
    format!("{}{unit}{total}", name.replace('.', "_"))
}

fn mixed() -> Router {
    let handle = |event: OrderPlaced| async move {
        match event.order_id {
            1 => Err(HandlerError::terminal("no")),
            2 => Err(HandlerError::unavailable("away")),
            _ => Ok(()),
        }
    };
    Router::builder().on("tests.handle", handle).build().unwrap()
}

/// All metrics after a relay and a monitor had something to tell of every kind.
async fn worked(collected: &Collected) -> MemoryStore {
    let store = MemoryStore::default();
    let unknown = Envelope::stored(MessageId::new(), "nobody.knows-this".into(), 1, "{}".into());
    store.append(&[placed(1), placed(2), placed(3), unknown]).unwrap();
    let meter = collected.provider.meter("outbox");
    let metrics = Metrics::new(&meter);
    let running =
        Running::start(Relay::new(store.clone(), mixed()).with_config(fast()).observe(metrics.relay()));
    let monitor = Monitor::new(store.clone()).every(Duration::from_millis(100)).on_signals(metrics.signals());
    let (stop, stopped) = oneshot::channel::<()>();
    let watching = tokio::spawn(async move { monitor.run(async { drop(stopped.await) }).await });
    until("the monitor has seen what is left", async || {
        let metrics = collected.metrics();
        let is = |name: &str, label, value: f64| {
            metrics.get(name).is_some_and(|seen| seen.with(Some(label)) >= value)
        };
        is("outbox.dead_letters", ("class", "terminal"), 1.0)
            && is("outbox.unroutable", ("event", "nobody.knows-this.v1"), 1.0)
            && is("outbox.ended", ("end", "waits"), 1.0)
            && is("outbox.rows", ("state", "retrying"), 1.0)
    })
    .await;
    running.stop().await;
    drop(stop);
    watching.await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_the_names_units_and_labels_that_are_documented() {
    let collected = Collected::new();
    worked(&collected).await;
    let found = collected.metrics();
    // Nothing was lost and nothing failed.
    let silent = ["outbox.leases.lost", "outbox.store.failures"];
    for metric in METRICS.iter().filter(|metric| !silent.contains(&metric.name)) {
        let seen = found.get(metric.name).unwrap_or_else(|| panic!("{} was not recorded", metric.name));
        assert_eq!(seen.unit, metric.unit, "{}", metric.name);
        let labels: BTreeSet<&str> = seen.values.keys().flatten().map(|(key, _)| key.as_str()).collect();
        assert_eq!(labels, metric.labels.iter().copied().collect(), "{}", metric.name);
    }
    assert!(found.keys().all(|name| METRICS.iter().any(|metric| metric.name == name)), "{:?}", found.keys());
    assert_eq!(found["outbox.ended"].with(Some(("end", "dispatched"))), 1.0);
    assert_eq!(found["outbox.delivery.duration"].with(None), 1.0);
    assert_eq!(found["outbox.attempts"].with(Some(("outcome", "terminal"))), 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_is_recorded_as_nothing() {
    let collected = Collected::new();
    let metrics = Metrics::new(&collected.provider.meter("outbox"));
    let store = MemoryStore::default();
    let record = metrics.signals();
    let look = async || record(&outbox_core::store::OutboxOperator::signals(&store, None).await.unwrap());
    store.append(&[placed(1), placed(3)]).unwrap();
    look().await;
    let rows = |state| collected.metrics()["outbox.rows"].with(Some(("state", state)));
    assert_eq!(rows("ready"), 2.0);
    Relay::new(store.clone(), mixed()).pass().await.unwrap();
    look().await;
    assert_eq!(rows("ready"), 0.0);
    assert_eq!(collected.metrics()["outbox.lag"].with(None), 0.0);
    let dead = || collected.metrics()["outbox.dead_letters"].with(None);
    assert_eq!(dead(), 1.0);
    let id =
        store.rows().iter().find(|row| row.finished_at.is_some() && row.last_error.is_some()).unwrap().id;
    outbox_core::store::OutboxOperator::skip(&store, id, "ann", None, None).await.unwrap();
    look().await;
    assert_eq!(dead(), 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_alert_uses_metrics_and_labels_that_exist_and_has_its_runbook() {
    let collected = Collected::new();
    worked(&collected).await;
    let mut known: BTreeSet<String> =
        collected.metrics().iter().map(|(name, seen)| in_prometheus(name, seen)).collect();
    known.extend(["outbox_leases_lost_total", "outbox_store_failures_total"].map(str::to_owned));
    let read = |path: &str| {
        std::fs::read_to_string(format!("{}/../docs/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let (alerts, runbook) = (read("alerts.yaml"), read("operating.md"));
    let headings: BTreeSet<String> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")))
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect();
    let (mut exprs, mut used) = (0, BTreeSet::new());
    for line in alerts.lines() {
        if let Some(expr) = line.trim().strip_prefix("expr: ") {
            exprs += 1;
            let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in words.filter(|word| word.starts_with("outbox_")) {
                assert!(known.contains(word), "{word} in: {expr}");
                used.insert(word.to_owned());
            }
        }
        if let Some(link) = line.trim().strip_prefix("runbook: docs/operating.md#") {
            assert!(headings.contains(link), "no heading for {link} in docs/operating.md");
        }
    }
    assert!(exprs > 10 && used.len() > 8, "{exprs} rules over {used:?}");
    for metric in METRICS {
        assert!(
            runbook.contains(&format!("`{}`", metric.name)),
            "{} is not in docs/operating.md",
            metric.name
        );
        assert!(runbook.contains(metric.meaning), "what {} means is not in docs/operating.md", metric.name);
    }
}

/// The only test of this binary that sets the source and the linker of the process: they can be set once.
#[tokio::test]
async fn a_trace_goes_on_from_the_raise_to_the_handler() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("tests"));
    let _subscriber = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    propagate().unwrap();
    let request = tracing::info_span!("request");
    let context = request.context().span().span_context().clone();
    let store = MemoryStore::default();
    let raised = request.in_scope(|| placed(3));
    let traceparent = format!("00-{}-{}-01", context.trace_id(), context.span_id());
    assert_eq!(raised.headers["traceparent"], traceparent);
    store.append(&[raised]).unwrap();
    drop(request);
    let handle = async |_: OrderPlaced| {
        let inner = Envelope::new(&NoteTaken { text: "caused".into() }).unwrap();
        assert_ne!(inner.headers["traceparent"], "", "the handler's own span");
        let own = tracing::Span::current().context().span().span_context().span_id().to_string();
        assert!(inner.headers["traceparent"].contains(&own));
        Ok::<(), HandlerError>(())
    };
    let router = Router::builder().on("tests.handle", handle).build().unwrap();
    let report = Relay::new(store, router).pass().instrument(tracing::info_span!("pass")).await.unwrap();
    assert_eq!(report.dispatched, 1);
    let spans = exporter.get_finished_spans().unwrap();
    let handled = spans.iter().find(|span| span.name == "outbox.handle").expect("the handler has a span");
    let links: Vec<_> = handled.links.iter().map(|link| link.span_context.span_id()).collect();
    assert_eq!(links, [context.span_id()]);
    assert!(spans.iter().any(|span| span.name == "outbox.mark"));
    let attributes: BTreeMap<_, _> =
        handled.attributes.iter().map(|label| (label.key.as_str(), label.value.to_string())).collect();
    assert_eq!(attributes["event"], "orders.order-placed.v1");
    assert_eq!(attributes["handler"], "tests.handle");
    assert!(
        spans
            .iter()
            .flat_map(|span| &span.attributes)
            .all(|label| !label.value.to_string().contains("total_cents"))
    );
}

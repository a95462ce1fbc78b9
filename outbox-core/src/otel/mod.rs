//! OpenTelemetry: metrics of relays and outboxes, and traces that go on through the outbox (feature `opentelemetry`).
//!
//! ```no_run
//! # async fn run<S: outbox_core::store::OutboxOperator + Clone>(store: S, router: outbox_core::Router)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use outbox_core::{Monitor, Relay, otel};
//!
//! otel::propagate()?; // needs a `tracing_opentelemetry` layer in the application's subscriber
//! let metrics = otel::Metrics::new(&opentelemetry::global::meter("outbox"));
//! let relay = Relay::new(store.clone(), router).observe(metrics.relay());
//! let monitor = Monitor::new(store).on_signals(metrics.signals());
//! # let _ = (relay, monitor);
//! # Ok(())
//! # }
//! ```

mod metrics;
mod names;
mod trace;

pub use metrics::Metrics;
pub use names::{METRICS, MetricInfo};
pub use trace::propagate;

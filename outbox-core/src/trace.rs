//! The trace that an event belongs to, as its headers carry it: [W3C Trace Context](https://www.w3.org/TR/trace-context/).
//!
//! An event that a handler raises carries on the trace of the message that the handler handles, without anybody doing
//! anything. Where a trace begins only the application knows: [`set_source`] is asked whenever an event is raised. No
//! tracing library is a dependency of this crate; its own span or context is turned into a [`TraceContext`] in a few
//! lines.

use crate::envelope::Envelope;
use std::sync::OnceLock;
use tracing::Span;

/// The header that names trace and span: `00-<trace id>-<span id>-<flags>`.
pub const TRACEPARENT: &str = "traceparent";

/// The header with what vendors add to it.
pub const TRACESTATE: &str = "tracestate";

/// The two headers of W3C Trace Context, as they are sent over HTTP. They are carried and not looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace and span.
    pub traceparent: String,
    /// What vendors add to it, if anything.
    pub tracestate: Option<String>,
}

type Source = Box<dyn Fn() -> Option<TraceContext> + Send + Sync>;

static SOURCE: OnceLock<Source> = OnceLock::new();

/// There is a source already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process has a source of trace context already; set one, once, at the start")]
pub struct SourceIsSet;

/// Sets where the events of this process get their trace context from.
///
/// The source is called on the thread that raises an event, each time. What it returns stands before the trace of the
/// message that is being handled: inside a handler it knows the handler's own span. `None` leaves it at that trace, or
/// at none. Headers that the application sets on an [`Envelope`] itself stand before both.
///
/// ```
/// use outbox_core::{Envelope, trace::{TraceContext, set_source}};
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "stock.level-fell", version = 1, ordering = none)]
/// # struct LevelFell { sku: String }
///
/// tokio::task_local! {
///     /// Set by the application's middleware from the request. With OpenTelemetry, inject the current context through
///     /// the global propagator instead.
///     static REQUEST: TraceContext;
/// }
///
/// set_source(|| REQUEST.try_with(TraceContext::clone).ok())?;
///
/// let request = TraceContext { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into(), tracestate: None };
/// let raised = REQUEST.sync_scope(request.clone(), || Envelope::new(&LevelFell { sku: "A-1".into() }))?;
/// assert_eq!(raised.headers["traceparent"], request.traceparent);
/// assert!(set_source(|| None).is_err(), "there is one already");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When there is one already: it belongs to the process, so libraries leave it alone.
///
/// # Panics
///
/// Never; but a source that panics does so where an event is raised.
pub fn set_source(
    source: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
) -> Result<(), SourceIsSet> {
    SOURCE.set(Box::new(source)).map_err(|_| SourceIsSet)
}

type Linker = Box<dyn Fn(&Span, &TraceContext) + Send + Sync>;

static LINKER: OnceLock<Linker> = OnceLock::new();

/// Sets what links the span of a handler, `outbox.handle`, to the trace in which its message was raised. It is called with
/// each new span whose message has a trace context. The feature `opentelemetry` has one ready.
///
/// # Errors
///
/// When there is one already.
pub fn set_linker(linker: impl Fn(&Span, &TraceContext) + Send + Sync + 'static) -> Result<(), SourceIsSet> {
    LINKER.set(Box::new(linker)).map_err(|_| SourceIsSet)
}

/// Links a span to the trace of a message, if anybody knows how.
pub(crate) fn link(span: &Span, envelope: &Envelope) {
    if let Some(linker) = LINKER.get()
        && let Some(trace) = envelope.trace()
    {
        linker(span, &trace);
    }
}

/// What the source knows, if there is one.
pub(crate) fn from_source() -> Option<TraceContext> {
    SOURCE.get().and_then(|source| source())
}

//! Traces that go on through the outbox: the current span's context is stored with an event, and the span of its handler
//! links to it.

use crate::trace::{SourceIsSet, TraceContext, set_linker, set_source};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Stores the trace context of the current `tracing` span with each event that is raised, and links the span of a handler,
/// `outbox.handle`, to it. The application's subscriber needs a layer of `tracing_opentelemetry`; without one, and for
/// spans that it does not sample, nothing is stored or linked.
///
/// It is a link and not a parent: a message may be handled long after its trace has ended, several times, and by several
/// handlers.
///
/// # Errors
///
/// When a source or a linker is set already. Call it once, at the start.
pub fn propagate() -> Result<(), SourceIsSet> {
    set_source(|| written(Span::current().context().span().span_context()))?;
    set_linker(|span, trace| {
        if let Some(context) = read(trace) {
            span.add_link(context);
        }
    })
}

fn written(context: &SpanContext) -> Option<TraceContext> {
    let (trace_id, span_id, flags) = (context.trace_id(), context.span_id(), context.trace_flags().to_u8());
    let state = context.trace_state().header();
    context.is_valid().then(|| TraceContext {
        traceparent: format!("00-{trace_id}-{span_id}-{flags:02x}"),
        tracestate: (!state.is_empty()).then_some(state),
    })
}

/// What a foreign header holds may be anything; what is no context is none.
fn read(trace: &TraceContext) -> Option<SpanContext> {
    let mut parts = trace.traceparent.split('-');
    let (version, trace_id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // Later versions may add parts; this one has four.
    let fits = version.len() == 2 && version != "ff" && (version != "00" || parts.next().is_none());
    let is_hex =
        |text: &str, len| text.len() == len && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !fits || !is_hex(version, 2) || !is_hex(trace_id, 32) || !is_hex(span_id, 16) || !is_hex(flags, 2) {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace_id).ok()?,
        SpanId::from_hex(span_id).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        trace.tracestate.as_deref().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default(),
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(traceparent: &str) -> Option<TraceContext> {
        read(&TraceContext { traceparent: traceparent.to_owned(), tracestate: None })
            .as_ref()
            .and_then(written)
    }

    #[test]
    fn a_context_comes_back_as_it_was_written() {
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(context(traceparent).unwrap().traceparent, traceparent);
        let trace = TraceContext { traceparent: traceparent.into(), tracestate: Some("a=1,b=2".into()) };
        assert_eq!(read(&trace).as_ref().and_then(written), Some(trace));
    }

    #[test]
    fn what_is_no_context_is_none() {
        for header in [
            "",
            "00",
            "nonsense",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-é4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(context(header), None, "{header}");
        }
        assert!(context("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
    }
}

//! Keeps spans and prints them as trees, in place of a collector.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::trace::SpanId;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// The spans that have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<SpanData>>>);

impl Spans {
    /// Returns the spans in the order of their beginning.
    pub(crate) fn all(&self) -> Vec<SpanData> {
        let spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spans = spans.clone();
        spans.sort_by_key(|span| span.start_time);
        spans
    }
}

impl SpanExporter for Spans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spans.extend(batch);
        Ok(())
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        inside(SpanId::INVALID, 0, &self.all(), f)
    }
}

/// Writes the spans inside of `parent`, each with those inside of it.
fn inside(
    parent: SpanId,
    depth: usize,
    spans: &[SpanData],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for span in spans.iter().filter(|span| span.parent_span_id == parent) {
        let took = span.end_time.duration_since(span.start_time);
        let millis = took.unwrap_or_default().as_secs_f64() * 1e3;
        let name = format!("{:indent$}{}", "", span.name, indent = 2 * depth);
        write!(f, "{name:<20} {millis:8.2} ms ")?;
        for attribute in &span.attributes {
            write!(f, " {}={}", attribute.key, attribute.value)?;
        }
        writeln!(f)?;
        inside(span.span_context.span_id(), depth + 1, spans, f)?;
    }
    Ok(())
}

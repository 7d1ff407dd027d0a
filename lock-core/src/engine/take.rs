//! Acquiring a lock of one key or of several.

use tracing::{Instrument, Span};

use super::acquire::take_one;
use super::acquired::Acquired;
use super::several::take_all;
use super::spec::LockSpec;
use crate::base::error::Error;

pub(crate) async fn acquire(spec: &LockSpec) -> Result<Acquired, Error> {
    let span = tracing::debug_span!(
        "lock.acquire",
        outcome = tracing::field::Empty,
        waited_ms = tracing::field::Empty
    );
    if span.is_disabled() {
        return take(spec).await;
    }
    // Boxed: without a subscriber it costs nothing.
    Box::pin(take_in_span(spec, span)).await
}

async fn take_in_span(spec: &LockSpec, span: Span) -> Result<Acquired, Error> {
    let started = spec.engine.now();
    let result = take(spec).instrument(span.clone()).await;
    let outcome = result.as_ref().map_or_else(Error::code, |_| "acquired");
    span.record("outcome", outcome);
    let waited = spec.engine.now().since(started);
    span.record("waited_ms", waited.as_secs_f64() * 1e3);
    result
}

async fn take(spec: &LockSpec) -> Result<Acquired, Error> {
    if !spec.others.is_empty() {
        return Box::pin(take_all(spec)).await;
    }
    take_one(spec).await
}

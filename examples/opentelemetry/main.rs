//! Shows the spans of locks in OpenTelemetry.
//!
//! Two requests for one user arrive at once. Each is a trace, and the second one shows how long it waited for the lock of
//! the first.
//!
//! Run it with `cargo run --example opentelemetry --features opentelemetry`. With `REDIS_URL=redis://127.0.0.1:6379` in
//! the environment, the locks live in Redis. It needs no collector, because its exporter keeps the spans and prints them. A service has the exporter
//! of `opentelemetry-otlp` in its place.

mod printed;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;

use lock_core::{LockManager, distributed_lock};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Instrument, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::printed::Spans;

/// The body runs in the span `lock.hold`, so its own spans are inside of that one.
#[distributed_lock(key = "order:<uid>", ttl = "10s", wait = "5s", manager = locks)]
async fn place_order(locks: &LockManager, uid: u64) -> Result<(), lock_core::Error> {
    let bank = tokio::time::sleep(Duration::from_millis(50));
    bank.instrument(tracing::info_span!("charge")).await;
    Ok(())
}

/// Handles one request. The spans of locks contain no key, so the service adds what it may show.
async fn request(locks: &LockManager, uid: u64) -> Result<(), lock_core::Error> {
    let span = tracing::info_span!("POST /orders", user = uid);
    place_order(locks, uid).instrument(span).await
}

/// Makes a subscriber of `tracing` that hands its spans to OpenTelemetry. The spans of locks have the level `debug`.
fn subscriber(provider: &SdkTracerProvider) -> impl Subscriber + Send + Sync + 'static {
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("shop"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    tracing_subscriber::registry()
        .with(LevelFilter::DEBUG)
        .with(layer)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let spans = Spans::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(spans.clone()) // with_batch_exporter(SpanExporter::builder().with_tonic().build()?)
        .build();
    subscriber(&provider).init();

    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    let (first, second) = tokio::join!(request(&locks, 42), request(&locks, 42));
    first.and(second)?;
    locks.drain(Duration::from_secs(5)).await;

    provider.shutdown()?; // exports what is left
    print!("{spans}");
    Ok(())
}

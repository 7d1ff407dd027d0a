//! Serves the metrics of both libraries in the text format of Prometheus.
//!
//! `grafana.json` beside this file is a dashboard for them.

use std::error::Error;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::app::Shop;

/// The upper ends of the buckets for times, in seconds: from a round trip to a lock held very long.
const SECONDS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0,
];
/// The upper ends of the buckets for the sizes of recorded answers.
const BYTES: [f64; 5] = [256.0, 1024.0, 4096.0, 16_384.0, 65_536.0];
/// The recorder keeps each value of a histogram until then, if no scrape has put it into its bucket.
const UPKEEP: Duration = Duration::from_secs(5);

/// Installs the recorder of this process. Gauges count from then on, so it precedes the first lock.
pub(crate) fn install() -> Result<PrometheusHandle, Box<dyn Error>> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_bytes".to_owned()), &BYTES)?
        .install_recorder()?;
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

/// Serves `GET /metrics`.
pub(crate) async fn serve(State(shop): State<Shop>) -> impl IntoResponse {
    let text = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (text, shop.metrics.render())
}

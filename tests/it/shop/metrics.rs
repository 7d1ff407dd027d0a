//! Tests the metrics that the shop serves for Prometheus.

use std::collections::BTreeMap;

use lock_tests::{http, wait};

use super::{buy, code, opened};

/// Returns the served series, with their values.
async fn series(port: u16) -> BTreeMap<String, f64> {
    let answer = http::get(port, "/metrics").await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.headers["content-type"].starts_with("text/plain; version=0.0.4"));
    for value in ["ada", "submit:", "order:"] {
        assert!(!answer.body.contains(value), "{}", answer.body);
    }
    let lines = answer.body.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parted = lines.map(|line| line.rsplit_once(' ').expect("a series and its value"));
    parted
        .map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
        .collect()
}

#[tokio::test]
async fn a_double_click_is_seen_in_the_metrics_of_both_libraries() {
    let (_shop, port) = opened();
    let first = tokio::spawn(async move { buy(port, "ada").await.status });
    wait::eventually("the order holds both of its locks", async || {
        series(port).await.get("lock_held") == Some(&2.0)
    })
    .await;
    assert_eq!(code(&buy(port, "ada").await), "lock_busy");
    assert_eq!(first.await.expect("an answer"), 201);
    let seen = series(port).await;
    // The locks of the request, of the user's order and of the product.
    for (name, value) in [
        ("lock_acquisitions_total{outcome=\"granted\"}", 3.0),
        ("lock_acquisitions_total{outcome=\"lock_busy\"}", 1.0),
        ("lock_held", 0.0),
        ("lock_acquire_seconds_bucket{le=\"+Inf\"}", 3.0),
        ("lock_hold_seconds_count", 3.0),
        (
            "lock_layer_requests_total{layer=\"lock\",outcome=\"granted\",action=\"locked\"}",
            1.0,
        ),
        (
            "lock_layer_requests_total{layer=\"lock\",outcome=\"lock_busy\",action=\"refused\"}",
            1.0,
        ),
        ("lock_layer_in_flight{layer=\"lock\"}", 0.0),
        ("lock_layer_hold_seconds_count{layer=\"lock\"}", 1.0),
    ] {
        assert_eq!(seen.get(name), Some(&value), "{name} in {seen:#?}");
    }
}

//! Settings of zero and of the longest duration.

use std::time::Duration;

use crate::common::*;
use http::StatusCode;
use lock_tower::{LockLayer, Outage, RejectionKind};
use tower::Layer;

const DAY: u64 = 24 * 3600;

#[tokio::test]
async fn an_endless_cooldown_is_a_day_and_none_is_none() {
    for (name, seconds) in [("endless", Some(DAY)), ("none", None)] {
        let span = seconds.map_or(Duration::ZERO, |_| Duration::MAX);
        for by in ["cooldown", "min_interval", "cooldown_with"] {
            let (locks, _clock) = with_clock().await;
            let layer = per_user_and_route(&locks);
            let layer = match by {
                "cooldown" => layer.cooldown(span),
                "min_interval" => layer.min_interval(span),
                _ => layer.cooldown_with(move |_| span),
            };
            let service = layer.layer(answers(StatusCode::OK));
            assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
            let next = send(&service, click("42")).await;
            assert_eq!(next.retry_after, seconds, "{by}: {name}");
            let expected = seconds.map(|_| RejectionKind::CoolingDown);
            assert_eq!(next.kind(), expected, "{by}: {name}");
        }
    }
}

#[tokio::test]
async fn endless_timeouts_are_endless_and_no_overflow() {
    let (locks, store) = embedded();
    let fallback = lock_core::LockManager::in_memory();
    for outage in [Outage::Reject, Outage::Pass, Outage::Fallback(fallback)] {
        let layer = per_user_and_route(&locks)
            .acquire_timeout(Duration::MAX)
            .release_timeout(Duration::MAX)
            .max_hold(Duration::MAX)
            .wait(Duration::MAX)
            .on_outage(outage);
        let service = layer.layer(answers(StatusCode::OK));
        assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
        assert_eq!(layer.in_flight().drain(Duration::MAX).await, 0);
        assert_eq!(store.taken(), 0);
    }
    let layer = LockLayer::body_template(locks, "k:<body>", usize::MAX).unwrap();
    let service = layer.body_timeout(Duration::MAX).layer(tower::service_fn(
        |_: http::Request<lock_tower::RequestBody<Body>>| async { ok(StatusCode::OK) },
    ));
    let mut request = click("42");
    *request.body_mut() = Body::from("order");
    assert_eq!(send(&service, request).await.status, StatusCode::OK);
}

/// The store cannot answer within a nanosecond, so the state of the lock is unknown.
#[tokio::test]
async fn hardly_any_time_for_the_store_is_a_503_or_a_lock_and_never_a_409() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks)
        .acquire_timeout(Duration::from_nanos(1))
        .release_timeout(Duration::ZERO)
        .wait(Duration::ZERO);
    let service = layer.layer(answers(StatusCode::OK));
    for _ in 0..10 {
        let status = send(&service, click("42")).await.status;
        assert!(
            [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE].contains(&status),
            "{status}"
        );
        all_released_so_far(&locks, &store).await;
    }
}

async fn all_released_so_far(
    locks: &lock_core::LockManager,
    store: &lock_core::test_util::TestStore,
) {
    until(|| locks.held().is_empty() && store.taken() == 0).await;
}

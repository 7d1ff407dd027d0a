//! Keys that stay taken after the response.

use std::time::Duration;

use crate::common::*;
use http::StatusCode;
use lock_core::LockManager;
use lock_tower::{LockLayer, RejectionKind};
use tower::{Layer, service_fn};

const COOLDOWN: Duration = Duration::from_secs(2);

fn cooling(locks: &LockManager) -> LockLayer {
    per_user_and_route(locks).cooldown(COOLDOWN)
}

#[tokio::test]
async fn a_click_after_a_fast_answer_is_refused_until_the_cooldown_is_over() {
    let (locks, clock) = with_clock().await;
    for status in [
        StatusCode::OK,
        StatusCode::CREATED,
        StatusCode::NO_CONTENT,
        StatusCode::SEE_OTHER,
    ] {
        let service = cooling(&locks).layer(answers(status));
        assert_eq!(send(&service, click("42")).await.status, status);

        let refused = send(&service, click("42")).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
        assert_eq!(refused.problem()["code"], "lock_cooling_down");
        assert_eq!(
            send(&service, click("43")).await.status,
            status,
            "another user"
        );

        clock.advance(COOLDOWN);
        assert_eq!(send(&service, click("42")).await.status, status);
        clock.advance(COOLDOWN);
    }
}

/// A cooldown can follow a 401, a handler that was dropped, or a 500.
#[tokio::test]
async fn the_refusal_of_a_cooldown_claims_no_outcome_of_the_first_request() {
    let (locks, _clock) = with_clock().await;
    let layer = per_user_and_route(&locks).cooldown_with(|_| COOLDOWN);
    let service = layer.layer(answers(StatusCode::UNAUTHORIZED));
    send(&service, click("42")).await;
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    let text = refused.text.to_lowercase();
    for claim in ["succeeded", "done", "no need"] {
        assert!(!text.contains(claim), "{text}");
    }
}

#[tokio::test]
async fn a_request_that_failed_may_be_repeated_at_once() {
    let (locks, _clock) = with_clock().await;
    for status in [301, 302, 307, 308, 400, 401, 404, 409, 422, 429, 500, 503] {
        let status = StatusCode::from_u16(status).unwrap();
        let service = cooling(&locks).layer(answers(status));
        for _ in 0..2 {
            let answer = send(&service, click("42")).await;
            assert_eq!((answer.status, answer.rejection.is_none()), (status, true));
        }
    }
}

#[tokio::test]
async fn retry_after_is_exact_rounded_up_and_never_zero() {
    let (locks, clock) = with_clock().await;
    let service = cooling(&locks).layer(answers(StatusCode::OK));
    send(&service, click("42")).await;
    for (advance, expected) in [(0, 2), (500, 2), (500, 1), (900, 1), (99, 1)] {
        clock.advance(Duration::from_millis(advance));
        let refused = send(&service, click("42")).await;
        assert_eq!(refused.retry_after, Some(expected));
    }
    let left = send(&service, click("42"))
        .await
        .rejection
        .unwrap()
        .retry_after();
    assert_eq!(left, Some(Duration::from_millis(1)));
    clock.advance(Duration::from_millis(1));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_handler_slower_than_the_cooldown_is_followed_by_the_whole_cooldown() {
    let (locks, clock) = with_clock().await;
    let slow = clock.clone();
    let service = cooling(&locks).layer(service_fn(move |_| {
        slow.advance(3 * COOLDOWN);
        async { ok(StatusCode::OK) }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    assert_eq!(send(&service, click("42")).await.retry_after, Some(2));
    clock.advance(COOLDOWN);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_minimum_interval_is_counted_from_the_beginning_of_the_request() {
    const INTERVAL: Duration = Duration::from_secs(60);
    let (locks, clock) = with_clock().await;
    let slow = clock.clone();
    let layer = per_user_and_route(&locks).min_interval(INTERVAL);
    let service = layer.layer(service_fn(move |_| {
        slow.advance(Duration::from_secs(20));
        async { ok(StatusCode::OK) }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    assert_eq!(refused.retry_after, Some(40));
    clock.advance(Duration::from_secs(40));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn after_a_handler_longer_than_the_interval_the_key_is_free() {
    let (locks, clock) = with_clock().await;
    let layer = per_user_and_route(&locks).min_interval(Duration::from_secs(60));
    let service = layer.layer(service_fn(move |_| {
        clock.advance(Duration::from_secs(60));
        async { ok(StatusCode::OK) }
    }));
    for _ in 0..3 {
        assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_function_of_the_response_says_how_long_the_key_stays_taken() {
    let (locks, clock) = with_clock().await;
    let layer = cooling(&locks).cooldown_with(|head| match head.status {
        StatusCode::UNAUTHORIZED => Duration::from_secs(7),
        _ => Duration::ZERO,
    });
    let ok = layer.layer(answers(StatusCode::OK));
    for _ in 0..2 {
        let answer = send(&ok, click("42")).await;
        assert_eq!(answer.status, StatusCode::OK, "it alone decides");
    }
    let unauthorized = layer.layer(answers(StatusCode::UNAUTHORIZED));
    send(&unauthorized, click("42")).await;
    assert_eq!(send(&ok, click("42")).await.retry_after, Some(7));
    clock.advance(Duration::from_secs(7));
    assert_eq!(send(&ok, click("42")).await.status, StatusCode::OK);
}

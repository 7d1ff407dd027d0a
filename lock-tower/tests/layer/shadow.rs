//! In shadow mode everything is counted and nothing is refused.

use std::time::Duration;

use crate::common::*;
use http::{Request, StatusCode};
use lock_core::{ErrorKind, Wait};
use tower::{Layer, ServiceExt};

#[tokio::test]
async fn in_shadow_mode_a_duplicate_runs_without_the_lock() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks).wait(Wait::Forever).shadow();
    let service = layer.layer(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let second = tokio::spawn(service.oneshot(click("42")));
    gate.entered(2).await;
    assert_eq!(store.taken(), 1);
    assert_eq!(layer.in_flight().count(), 2, "the shutdown waits for both");
    gate.let_through(2);
    for request in [first, second] {
        let answer = read(request.await.unwrap().unwrap()).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (StatusCode::OK, "done")
        );
        assert!(answer.rejection.is_none());
    }
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn in_shadow_mode_nothing_is_refused_for_any_reason() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks)
        .cooldown(Duration::from_secs(3600))
        .shadow();
    let service = layer.clone().layer(answers(StatusCode::OK));
    for _ in 0..2 {
        assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    }
    let anonymous = Request::post("/orders").body(Body::default()).unwrap();
    assert_eq!(send(&service, anonymous).await.status, StatusCode::OK);
    let long = click(&"x".repeat(2000));
    assert_eq!(send(&service, long).await.status, StatusCode::OK);
    let invalid = layer.ttl(Duration::ZERO).layer(answers(StatusCode::OK));
    assert_eq!(send(&invalid, click("43")).await.status, StatusCode::OK);
    for kind in [ErrorKind::Unavailable, ErrorKind::Misconfigured] {
        store.fail(kind);
        assert_eq!(send(&service, click("43")).await.status, StatusCode::OK);
    }
}

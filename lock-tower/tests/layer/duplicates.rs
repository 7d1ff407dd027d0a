//! Requests that run at the same time, and the responses to duplicates.

use std::time::Duration;

use crate::common::*;
use http::{Method, StatusCode};
use lock_core::{ErrorKind, LockManager, Wait};
use lock_tower::RejectionKind;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt};

#[tokio::test]
async fn a_second_click_is_refused_while_the_first_runs() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = per_user_and_route(&locks).layer(gated(&gate));

    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let second = send(&service, click("42")).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(second.kind(), Some(RejectionKind::InFlight));
    assert_eq!(
        second.content_type.as_deref(),
        Some("application/problem+json")
    );
    assert_eq!(second.problem()["code"], "lock_busy");
    assert_eq!(second.retry_after, Some(1), "a hint, whatever the ttl is");
    assert_eq!(second.problem()["retry_after_ms"], 1000);

    gate.let_through(1);
    let first = read(first.await.unwrap().unwrap()).await;
    assert_eq!(
        (first.status, first.text.as_str()),
        (StatusCode::OK, "done")
    );
    assert!(first.rejection.is_none());
    assert_eq!(gate.entered_so_far(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_parallel_clicks_one_runs() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let service = per_user_and_route(&locks).layer(gated(&gate));

    let mut clicks = JoinSet::new();
    for _ in 0..50 {
        clicks.spawn(service.clone().oneshot(click("42")));
    }
    for _ in 0..49 {
        let response = clicks.join_next().await.unwrap().unwrap().unwrap();
        let refused = read(response).await;
        assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
        assert!(refused.retry_after.is_some_and(|seconds| seconds > 0));
    }
    gate.let_through(1);
    let last = clicks.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(last.status(), StatusCode::OK);
    assert_eq!(gate.entered_so_far(), 1);
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn two_servers_with_one_store_let_one_click_run() {
    let url = "memory:two-servers";
    let one = LockManager::connect(url).await.unwrap();
    let other = LockManager::connect(url).await.unwrap();
    let gate = Gate::closed();
    let first = per_user_and_route(&one).layer(gated(&gate));
    let second = per_user_and_route(&other).layer(gated(&gate));

    let running = tokio::spawn(first.oneshot(click("42")));
    gate.entered(1).await;
    assert_eq!(
        send(&second, click("42")).await.kind(),
        Some(RejectionKind::InFlight)
    );
    gate.let_through(1);
    assert_eq!(running.await.unwrap().unwrap().status(), StatusCode::OK);
    gate.let_through(1);
    assert_eq!(send(&second, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn another_user_another_route_and_another_method_run() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = per_user_and_route(&locks).layer(gated(&gate));

    let mut running = JoinSet::new();
    for request in [
        click("42"),
        click("43"),
        request(Method::POST, "/refunds", "42"),
        request(Method::PUT, "/orders", "42"),
    ] {
        running.spawn(service.clone().oneshot(request));
    }
    gate.entered(4).await;
    gate.let_through(4);
    while let Some(response) = running.join_next().await {
        assert_eq!(response.unwrap().unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn get_head_and_options_never_touch_the_lock() {
    let (locks, store) = embedded();
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    store.fail(ErrorKind::Unavailable);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        let anonymous = http::Request::builder().method(method).uri("/orders");
        let answer = send(&service, anonymous.body(Body::default()).unwrap()).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer = send(&service, request(method, "/orders", "42")).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn the_methods_that_are_named_are_locked_and_no_others() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks).methods([Method::GET]);
    let service = layer.layer(answers(StatusCode::OK));
    store.fail(ErrorKind::Unavailable);
    let get = send(&service, request(Method::GET, "/orders", "42")).await;
    assert_eq!(get.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

/// axum answers HEAD with the handler of GET.
#[tokio::test]
async fn where_get_is_locked_head_is_too_and_under_the_same_key() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks).methods([Method::GET]);
    let service = layer.layer(gated(&gate));
    let get = request(Method::GET, "/orders", "42");
    let first = tokio::spawn(service.clone().oneshot(get));
    gate.entered(1).await;
    gate.let_through(2);
    let head = send(&service, request(Method::HEAD, "/orders", "42")).await;
    assert_eq!(head.kind(), Some(RejectionKind::InFlight));
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_submit_right_after_the_answer_was_read_runs() {
    let (locks, store) = embedded();
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    for _ in 0..100 {
        assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
        assert_eq!(store.taken(), 0, "released before the answer");
    }
}

#[tokio::test]
async fn the_applications_own_409_can_be_told_apart() {
    let (locks, _) = embedded();
    let service = per_user_and_route(&locks).layer(answers(StatusCode::CONFLICT));
    let own = send(&service, click("42")).await;
    assert_eq!(
        (own.status, own.text.as_str()),
        (StatusCode::CONFLICT, "done")
    );
    assert!(own.rejection.is_none() && own.retry_after.is_none());

    let _held = locks
        .lock("submit:42:POST:/orders")
        .acquire()
        .await
        .unwrap();
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
}

#[tokio::test]
async fn a_duplicate_that_may_wait_runs_after_the_first() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks).wait(Wait::Forever);
    let service = layer.layer(gated(&gate));

    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let second = tokio::spawn(service.oneshot(click("42")));
    tokio::task::yield_now().await;
    assert_eq!(gate.entered_so_far(), 1, "the second waits");
    gate.let_through(2);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(second.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!((gate.ended_so_far(), store.taken()), (2, 0));
}

#[tokio::test]
async fn a_refusal_holds_no_key_token_or_user() {
    let (locks, store) = embedded();
    store.seize("submit:alice:POST:/orders", Duration::from_secs(5));
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    let response = service.oneshot(click("alice")).await.unwrap();
    assert_eq!(response.status(), StatusCode::CONFLICT);
    let (parts, body) = response.into_parts();
    let text = format!("{parts:?} {body:?}");
    assert!(
        !text.contains("alice") && !text.contains("submit"),
        "{text}"
    );
}

#[cfg(feature = "axum")]
#[test]
fn the_layer_and_lock_core_answer_the_same_error_alike() {
    use axum::response::IntoResponse;

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (locks, store) = embedded();
        let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
        store.seize("submit:42:POST:/orders", Duration::from_secs(3600));
        let error = locks
            .lock("submit:42:POST:/orders")
            .acquire()
            .await
            .unwrap_err();
        assert_alike(
            read(error.into_response()).await,
            send(&service, click("42")).await,
        );

        locks
            .lock("submit:43:POST:/orders")
            .cooldown(Duration::from_secs(3600))
            .run(async {})
            .await
            .unwrap();
        let error = locks
            .lock("submit:43:POST:/orders")
            .acquire()
            .await
            .unwrap_err();
        assert_alike(
            read(error.into_response()).await,
            send(&service, click("43")).await,
        );

        store.fail(ErrorKind::Misconfigured);
        let error = locks
            .lock("submit:44:POST:/orders")
            .acquire()
            .await
            .unwrap_err();
        assert_alike(
            read(error.into_response()).await,
            send(&service, click("44")).await,
        );

        let invalid = per_user_and_route(&locks)
            .ttl(Duration::ZERO)
            .layer(answers(StatusCode::OK));
        let error = locks
            .lock("k")
            .ttl(Duration::ZERO)
            .acquire()
            .await
            .unwrap_err();
        assert_alike(
            read(error.into_response()).await,
            send(&invalid, click("45")).await,
        );

        locks.drain(Duration::ZERO).await;
        let error = locks.lock("k").acquire().await.unwrap_err();
        assert_alike(
            read(error.into_response()).await,
            send(&service, click("46")).await,
        );
    });
}

#[cfg(feature = "axum")]
fn assert_alike(core: Answer, layer: Answer) {
    assert_eq!(core.status, layer.status);
    assert_eq!(core.content_type, layer.content_type);
    // Some time may have passed between the two responses.
    let before = |later: Option<u64>, earlier: Option<u64>| {
        later.is_none() == earlier.is_none() && later <= earlier
    };
    assert!(before(layer.retry_after, core.retry_after));
    let ((core, core_wait), (layer, layer_wait)) = (split(&core.text), split(&layer.text));
    assert_eq!(core, layer);
    assert!(
        before(layer_wait, core_wait),
        "{layer_wait:?} after {core_wait:?}"
    );
}

/// Takes the time of `retry_after_ms` out of a problem.
#[cfg(feature = "axum")]
fn split(text: &str) -> (String, Option<u64>) {
    let name = "\"retry_after_ms\":";
    let Some((before, behind)) = text.split_once(name) else {
        return (text.to_owned(), None);
    };
    let rest = behind.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let wait = behind[..behind.len() - rest.len()].parse();
    (
        format!("{before}{name}{rest}"),
        Some(wait.expect("milliseconds")),
    )
}

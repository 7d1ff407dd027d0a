//! Responses while the store fails, hangs, or dies halfway.

use std::time::Duration;

use crate::common::*;
use http::StatusCode;
use lock_core::{ErrorKind, LockManager};
use lock_tower::RejectionKind;
use tokio::net::TcpListener;
use tower::{Layer, service_fn};

#[tokio::test]
async fn a_store_that_is_down_is_a_503_with_retry_after_and_never_a_409() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let service = per_user_and_route(&locks).layer(gated(&gate));
    store.fail(ErrorKind::Unavailable);
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.kind(), Some(RejectionKind::Unavailable));
    assert_eq!(refused.problem()["code"], "lock_unavailable");
    assert_eq!(refused.retry_after, Some(1));
    assert_eq!(
        gate.entered_so_far(),
        0,
        "the handler never runs without the lock"
    );

    store.recover();
    gate.let_through(1);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_store_that_will_never_accept_it_is_a_500() {
    let (locks, store) = embedded();
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    store.fail(ErrorKind::Misconfigured);
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(refused.kind(), Some(RejectionKind::Misconfigured));
}

#[tokio::test]
async fn settings_out_of_bounds_are_a_500_with_a_code_of_their_own() {
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks).ttl(Duration::ZERO);
    let refused = send(&layer.layer(answers(StatusCode::OK)), click("42")).await;
    assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(refused.problem()["code"], "lock_invalid");
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_is_a_503_after_the_layers_own_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endless = Duration::from_secs(24 * 3600);
    let manager = LockManager::builder(&url(&silent)).operation_timeout(endless);
    let locks = manager.connect_lazy().unwrap();
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::Unavailable));
    assert!(refused.retry_after.is_some());
}

#[tokio::test]
async fn a_server_that_refuses_connections_is_a_503() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = url(&listener);
    drop(listener);
    let locks = LockManager::connect_lazy(&url).unwrap();
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::Unavailable));
}

#[tokio::test]
async fn a_manager_that_drains_gives_out_no_more_locks() {
    let (locks, _) = embedded();
    all_released(&locks).await;
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    assert_eq!(
        send(&service, click("42")).await.kind(),
        Some(RejectionKind::Unavailable)
    );
}

#[tokio::test]
async fn a_store_that_dies_before_the_release_costs_the_handler_nothing() {
    let (locks, store) = embedded();
    let dies = store.clone();
    let service = per_user_and_route(&locks).layer(service_fn(move |_| {
        dies.fail(ErrorKind::Unavailable);
        async { ok(StatusCode::CREATED) }
    }));
    let answer = send(&service, click("42")).await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::CREATED, "done")
    );
    store.recover();
    all_released(&locks).await;
    assert_eq!(store.taken(), 0, "released in the background");
}

#[tokio::test]
async fn a_release_that_hangs_holds_the_answer_back_no_longer_than_its_bound() {
    let (locks, store) = patient().await;
    let hangs = store.clone();
    let layer = per_user_and_route(&locks).release_timeout(Duration::from_millis(1));
    let service = layer.layer(service_fn(move |_| {
        hangs.hang();
        async { ok(StatusCode::CREATED) }
    }));
    let answer = send(&service, click("42")).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(store.taken(), 1);
    store.recover();
    all_released(&locks).await;
    assert_eq!(store.taken(), 0, "released in the background");
}

fn url(listener: &TcpListener) -> String {
    format!("redis://{}", listener.local_addr().unwrap())
}

//! The handler's view of its lock, and a lock that is lost while the handler runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use http::StatusCode;
use lock_core::{FencingToken, Renew};
use lock_tower::LockContext;
use tower::{Layer, service_fn};

#[tokio::test]
async fn fencing_tokens_rise_from_request_to_request() {
    let (locks, _) = embedded();
    let seen: Arc<Mutex<Vec<FencingToken>>> = Arc::default();
    let tokens = Arc::clone(&seen);
    let service = per_user_and_route(&locks).layer(service_fn(move |request| {
        let lock = context(&request);
        assert!(lock.is_valid() && !lock.remaining().is_zero());
        tokens
            .lock()
            .unwrap()
            .push(lock.fencing_token().expect("a lock"));
        async { ok(StatusCode::OK) }
    }));
    for _ in 0..5 {
        send(&service, click("42")).await;
    }
    let seen = seen.lock().unwrap();
    assert!(
        seen.len() == 5 && seen.is_sorted_by(|one, next| one < next),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_handler_that_has_lost_its_lock_sees_it_and_goes_on() {
    let (locks, store) = embedded();
    let stranger = store.clone();
    let layer = per_user_and_route(&locks)
        .ttl(Duration::from_secs(2))
        .cooldown(Duration::from_secs(3600));
    let service = layer.layer(service_fn(move |request| {
        let (lock, stranger) = (context(&request), stranger.clone());
        async move {
            stranger.seize("submit:42:POST:/orders", Duration::from_secs(3600));
            lock.lost().await;
            assert!(!lock.is_valid() && lock.remaining().is_zero());
            ok(StatusCode::CREATED)
        }
    }));
    let answer = send(&service, click("42")).await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::CREATED, "done")
    );
    all_released(&locks).await;
    assert_eq!(store.taken(), 1, "the stranger's lock stays what it is");
}

#[tokio::test]
async fn after_the_answer_a_context_that_was_kept_says_that_the_lock_is_gone() {
    let (locks, _) = embedded();
    let kept: Arc<Mutex<Option<LockContext>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let service = per_user_and_route(&locks).layer(service_fn(move |request| {
        *keep.lock().unwrap() = Some(context(&request));
        async { ok(StatusCode::OK) }
    }));
    send(&service, click("42")).await;
    let lock = kept.lock().unwrap().take().unwrap();
    assert!(!lock.is_valid() && lock.remaining().is_zero());
}

#[tokio::test]
async fn a_handler_that_reaches_its_max_hold_sees_it_and_its_answer_is_sent() {
    const LONGEST: Duration = Duration::from_secs(60);
    let (locks, clock) = with_clock().await;
    let store = locks.test_store().unwrap();
    let moved = clock.clone();
    let layer = per_user_and_route(&locks)
        .ttl(100 * LONGEST)
        .max_hold(LONGEST);
    let service = layer.layer(service_fn(move |request| {
        let (lock, clock) = (context(&request), moved.clone());
        async move {
            clock.advance(LONGEST);
            lock.lost().await;
            ok(StatusCode::CREATED)
        }
    }));
    let answer = send(&service, click("42")).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn without_renewal_a_handler_slower_than_the_ttl_loses_its_lock() {
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks)
        .ttl(Duration::from_millis(500))
        .renew(Renew::Off);
    let service = layer.layer(service_fn(move |request| {
        let lock = context(&request);
        async move {
            lock.lost().await; // renewed, it never would be
            ok(StatusCode::OK)
        }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

//! Requests during an outage of the store, by the policy of the layer.

use std::time::Duration;

use crate::common::*;
use http::StatusCode;
use lock_core::middleware::Forgotten;
use lock_core::{ErrorKind, LockManager, Wait};
use lock_tower::{LockLayer, Outage, RejectionKind};
use tower::{Layer, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

fn passing(locks: &LockManager) -> LockLayer {
    per_user_and_route(locks).on_outage(Outage::Pass)
}

fn guarded(locks: &LockManager, local: &LockManager) -> LockLayer {
    per_user_and_route(locks).on_outage(Outage::Fallback(local.clone()))
}

#[tokio::test]
async fn requests_may_pass_without_a_lock_while_the_store_is_down() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let service = passing(&locks).layer(service_fn(move |request: http::Request<Body>| {
        let lock = context(&request).is_locked();
        let gate = at_gate.clone();
        async move {
            gate.pass().await;
            ok(if lock {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            })
        }
    }));
    store.fail(ErrorKind::Unavailable);
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    let second = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(2).await;
    gate.let_through(2);
    for request in [first, second] {
        assert_eq!(request.await.unwrap().unwrap().status(), StatusCode::OK);
    }

    store.recover();
    gate.let_through(1);
    assert_eq!(
        send(&service, click("42")).await.status,
        StatusCode::CREATED
    );
}

/// The store still answers other processes, so a request that passed here would run beside theirs.
#[tokio::test]
async fn a_manager_that_drains_is_no_outage() {
    for outage in [Outage::Pass, Outage::Fallback(LockManager::in_memory())] {
        let (locks, _) = embedded();
        let layer = per_user_and_route(&locks).on_outage(outage);
        let service = layer.layer(answers(StatusCode::OK));
        all_released(&locks).await;
        let refused = send(&service, click("42")).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.kind(), Some(RejectionKind::Unavailable));
    }
}

#[tokio::test]
async fn a_layer_that_passes_outages_still_refuses_for_other_reasons() {
    for outage in [Outage::Pass, Outage::Fallback(LockManager::in_memory())] {
        let (locks, store) = embedded();
        let layer = per_user_and_route(&locks).on_outage(outage);
        let service = layer.layer(answers(StatusCode::OK));
        store.seize("submit:42:POST:/orders", HOUR);
        assert_eq!(
            send(&service, click("42")).await.kind(),
            Some(RejectionKind::InFlight)
        );
        store.fail(ErrorKind::Misconfigured);
        assert_eq!(
            send(&service, click("43")).await.kind(),
            Some(RejectionKind::Misconfigured)
        );
        assert_eq!(
            send(&service, click("")).await.kind(),
            Some(RejectionKind::KeyMissing)
        );
    }
}

#[tokio::test]
async fn a_store_that_hangs_is_passed_after_the_acquire_timeout() {
    let (locks, store) = embedded();
    let layer = passing(&locks).acquire_timeout(Duration::from_millis(1));
    store.hang();
    let answer = send(&layer.layer(answers(StatusCode::OK)), click("42")).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn with_a_fallback_one_click_runs_in_this_process_while_the_store_is_down() {
    let (locks, store) = embedded();
    let local = LockManager::in_memory();
    let gate = Gate::closed();
    let layer = guarded(&locks, &local).cooldown(HOUR);
    let service = layer.layer(gated(&gate));
    store.fail(ErrorKind::Unavailable);
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    assert_eq!(
        send(&service, click("42")).await.kind(),
        Some(RejectionKind::InFlight)
    );
    gate.let_through(1);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    assert_eq!(refused.retry_after, Some(3600));
}

#[tokio::test]
async fn an_outage_that_begins_or_ends_under_a_handler_lets_no_second_one_in() {
    for (at_first, later) in [(true, false), (false, true)] {
        let (locks, store) = embedded();
        let local = LockManager::in_memory();
        let is_down = |down| {
            if down {
                store.fail(ErrorKind::Unavailable);
            } else {
                store.recover();
            }
        };
        let gate = Gate::closed();
        let service = guarded(&locks, &local).layer(gated(&gate));
        is_down(at_first);
        let first = tokio::spawn(service.clone().oneshot(click("42")));
        gate.entered(1).await;
        is_down(later);
        assert_eq!(
            send(&service, click("42")).await.kind(),
            Some(RejectionKind::InFlight)
        );
        gate.let_through(1);
        assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
        store.recover();
        all_released(&locks).await;
        all_released(&local).await;
        let of_process = local.test_store().unwrap();
        assert_eq!((store.taken(), of_process.taken()), (0, 0));
    }
}

#[tokio::test]
async fn a_fallback_is_no_way_around_the_store_when_it_answers() {
    let (locks, store) = embedded();
    let local = LockManager::in_memory();
    let service = guarded(&locks, &local).layer(answers(StatusCode::OK));
    store.seize("submit:42:POST:/orders", HOUR); // another process
    for _ in 0..2 {
        assert_eq!(
            send(&service, click("42")).await.kind(),
            Some(RejectionKind::InFlight)
        );
    }
    all_released(&local).await;
    assert_eq!(local.test_store().unwrap().taken(), 0);
}

#[tokio::test]
async fn in_an_outage_longer_than_the_ttl_a_handler_that_still_runs_keeps_others_out() {
    let (locks, clock) = with_clock().await;
    let store = locks.test_store().unwrap();
    let gate = Gate::closed();
    let layer = guarded(&locks, &LockManager::in_memory());
    let first = tokio::spawn(layer.layer(gated(&gate)).oneshot(click("42")));
    gate.entered(1).await;
    store.fail(ErrorKind::Unavailable);
    clock.advance(HOUR);
    assert!(locks.held().is_empty(), "its lock in the store is lost");
    let second = layer.layer(answers(StatusCode::OK));
    assert_eq!(
        send(&second, click("42")).await.kind(),
        Some(RejectionKind::InFlight)
    );
    gate.let_through(1);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_cooldown_that_is_forgotten_in_the_store_is_over_in_the_process_too() {
    let (locks, _) = embedded();
    for wait in [Wait::None, Wait::Forever] {
        let local = LockManager::in_memory();
        let layer = guarded(&locks, &local).cooldown(HOUR).wait(wait);
        let service = layer.clone().layer(answers(StatusCode::OK));
        for _ in 0..2 {
            assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
            let refused = send(&service, click("42")).await;
            assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
            let key = layer.key_of(click("42")).await.unwrap();
            assert_eq!(locks.forget(key).await.unwrap(), Forgotten::Yes);
        }
    }
}

#[tokio::test]
async fn a_cooldown_goes_on_in_an_outage_that_begins_after_it() {
    let (locks, store) = embedded();
    let local = LockManager::in_memory();
    let layer = guarded(&locks, &local).cooldown(HOUR);
    let service = layer.layer(answers(StatusCode::OK));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    store.fail(ErrorKind::Unavailable);
    assert_eq!(
        send(&service, click("42")).await.kind(),
        Some(RejectionKind::CoolingDown)
    );
}

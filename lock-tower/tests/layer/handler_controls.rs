//! Handlers that enter their lock again, change the cooldown, or release the lock early.

use std::time::Duration;

use crate::common::*;
use http::{Request, StatusCode};
use lock_core::ErrorKind;
use lock_tower::{LockContext, LockLayer, RejectionKind};
use tower::{Layer, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

/// Makes a service whose handler calls `act` with its lock and responds with `status`.
fn handler<F>(say: fn(LockContext) -> F, status: StatusCode) -> impl Handler
where
    F: Future<Output = ()> + Send + 'static,
{
    service_fn(move |request: Request<Body>| {
        let said = say(context(&request));
        async move {
            said.await;
            ok(status)
        }
    })
}

fn cooling(locks: &lock_core::LockManager) -> LockLayer {
    per_user_and_route(locks).cooldown(HOUR)
}

#[tokio::test]
async fn a_handler_that_fails_may_ask_for_a_cooldown() {
    let (locks, _) = embedded();
    let say = |lock: LockContext| async move { lock.cool_down(HOUR) };
    let failing = handler(say, StatusCode::BAD_GATEWAY);
    let service = per_user_and_route(&locks).layer(failing);
    assert_eq!(
        send(&service, click("42")).await.status,
        StatusCode::BAD_GATEWAY
    );
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    assert_eq!(refused.retry_after, Some(3600));
}

#[tokio::test]
async fn a_cooldown_that_was_asked_for_counts_after_a_panic_too() {
    let (locks, _) = embedded();
    let service = per_user_and_route(&locks).layer(service_fn(|request: Request<Body>| {
        context(&request).cool_down(HOUR);
        if true {
            panic!("as asked for");
        }
        async { ok(StatusCode::OK) }
    }));
    let request = tokio::spawn(service.clone().oneshot(click("42")));
    assert!(request.await.unwrap_err().is_panic());
    // The key is in flight until the release arrives, and cools down afterwards.
    loop {
        match send(&service, click("42")).await.kind() {
            Some(RejectionKind::CoolingDown) => break,
            kind => assert_eq!(kind, Some(RejectionKind::InFlight)),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_last_call_of_the_handler_decides_the_cooldown() {
    let (locks, store) = embedded();
    let say = |lock: LockContext| async move {
        lock.cool_down(HOUR);
        lock.skip_cooldown();
    };
    let service = cooling(&locks).layer(handler(say, StatusCode::OK));
    for _ in 0..2 {
        assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    }
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn after_a_release_now_the_next_click_runs_beside_the_handler() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let inner = service_fn(move |request: Request<Body>| {
        let (lock, gate) = (context(&request), at_gate.clone());
        async move {
            lock.release_now().await.unwrap();
            lock.release_now().await.unwrap();
            assert!(!lock.is_valid());
            lock.cool_down(HOUR); // too late
            gate.pass().await;
            ok(StatusCode::OK)
        }
    });
    let layer = cooling(&locks);
    let service = layer.layer(inner);
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    assert_eq!(store.taken(), 0);
    let second = tokio::spawn(service.oneshot(click("42")));
    gate.entered(2).await;
    assert_eq!(layer.in_flight().count(), 2);
    gate.let_through(2);
    for request in [first, second] {
        assert_eq!(request.await.unwrap().unwrap().status(), StatusCode::OK);
    }
    assert_eq!(store.taken(), 0);
    assert_eq!(layer.in_flight().count(), 0);
}

#[tokio::test]
async fn a_cooldown_asked_for_before_a_release_now_counts() {
    let (locks, _) = embedded();
    let say = |lock: LockContext| async move {
        lock.cool_down(HOUR);
        lock.release_now().await.unwrap();
    };
    let service = per_user_and_route(&locks).layer(handler(say, StatusCode::OK));
    send(&service, click("42")).await;
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
}

#[tokio::test]
async fn a_release_now_says_that_the_lock_had_been_lost() {
    let (locks, store) = embedded();
    let service = per_user_and_route(&locks).layer(service_fn(move |request: Request<Body>| {
        let (lock, store) = (context(&request), store.clone());
        async move {
            store.seize("submit:42:POST:/orders", HOUR);
            let error = lock.release_now().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Lost);
            ok(StatusCode::OK)
        }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_nested_lock_of_the_same_key_enters_the_handlers_lock() {
    let (locks, _) = embedded();
    let inside = locks.clone();
    let service = per_user_and_route(&locks).layer(service_fn(move |request: Request<Body>| {
        let (lock, locks) = (context(&request), inside.clone());
        async move {
            let again = locks.lock("submit:42:POST:/orders");
            let entered = again.run_with(|lock| async move { lock.fencing_token() });
            assert_eq!(Some(entered.await.unwrap()), lock.fencing_token());
            ok(StatusCode::OK)
        }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_synchronous_part_of_a_call_is_inside_the_lock_too() {
    let (locks, _) = embedded();
    let inside = locks.clone();
    let service = per_user_and_route(&locks).layer(service_fn(move |_: Request<Body>| {
        let again = inside.lock("submit:42:POST:/orders").run(async {});
        let entered = poll_once(std::pin::pin!(again));
        assert!(matches!(entered, std::task::Poll::Ready(Ok(()))));
        async { ok(StatusCode::OK) }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn after_a_release_now_the_same_key_is_locked_anew() {
    let (locks, _) = embedded();
    let inside = locks.clone();
    let service = per_user_and_route(&locks).layer(service_fn(move |request: Request<Body>| {
        let (lock, locks) = (context(&request), inside.clone());
        async move {
            lock.release_now().await.unwrap();
            let again = locks.lock("submit:42:POST:/orders");
            let taken = again.run_with(|lock| async move { lock.fencing_token() });
            assert!(Some(taken.await.unwrap()) > lock.fencing_token());
            ok(StatusCode::OK)
        }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

//! Panics in all functions of the user that the layer calls. The lock is released, and the next
//! request runs.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::common::*;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use lock_core::LockKey;
use lock_tower::{LockLayer, ReleaseAt};
use tower::{Layer, Service, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

/// Sends a request in a task, and returns whether the task panicked.
async fn panics<S, B>(service: S, request: Request<Body>) -> bool
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible, Future: Send>
        + Send
        + 'static,
    B: Send + 'static,
{
    let answered = tokio::spawn(service.oneshot(request)).await;
    answered.is_err_and(|error| error.is_panic())
}

#[tokio::test]
async fn a_panic_in_on_reject_affects_the_duplicate_alone() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer =
        per_user_and_route(&locks).on_reject(|_, _| -> Response<String> { panic!("no words") });
    let service = layer.layer(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    assert!(panics(service.clone(), click("42")).await);
    gate.let_through(2);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_panic_in_cooldown_with_releases_the_lock() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks).cooldown_with(|head| match head.status {
        StatusCode::OK => panic!("no rule"),
        _ => HOUR,
    });
    let orders = layer.in_flight();
    assert!(panics(layer.layer(answers(StatusCode::OK)), click("42")).await);
    all_released(&locks).await;
    assert_eq!((orders.count(), store.taken()), (0, 0));
}

#[tokio::test]
async fn a_panic_in_the_keys_closure_acquires_no_lock_and_leaves_the_service_usable() {
    let (locks, store) = embedded();
    let first = AtomicBool::new(true);
    let layer = LockLayer::from_fn(locks.clone(), move |_| {
        assert!(!first.swap(false, Ordering::Relaxed), "no key");
        Some(LockKey::from("k"))
    });
    let mut service = layer.layer(answers(StatusCode::OK));
    let called = AssertUnwindSafe(|| drop(service.call(click("42"))));
    assert!(std::panic::catch_unwind(called).is_err());
    assert_eq!(store.taken(), 0);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_panic_after_a_release_now_releases_nothing_twice() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let service = per_user_and_route(&locks).layer(service_fn(move |request: Request<Body>| {
        let gate = at_gate.clone();
        async move {
            context(&request).release_now().await.expect("it was held");
            gate.pass().await;
            if request.headers().contains_key("x-user-id") {
                panic!("after it");
            }
            ok(StatusCode::OK)
        }
    }));
    let request = tokio::spawn(service.oneshot(click("42")));
    gate.entered(1).await;
    let next = locks.lock("submit:42:POST:/orders").acquire().await;
    let next = next.expect("it is free");
    gate.let_through(1);
    assert!(request.await.unwrap_err().is_panic());
    assert_eq!(store.taken(), 1, "the next one's lock is its own");
    assert!(next.is_valid());
    next.release().await.unwrap();
}

/// A body that yields one frame and then panics.
struct Bomb {
    given: bool,
}

impl http_body::Body for Bomb {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        assert!(!self.given, "half way");
        self.given = true;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"half")))))
    }
}

#[tokio::test]
async fn a_body_that_panics_while_it_is_sent_is_followed_by_no_cooldown() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks)
        .cooldown(HOUR)
        .release_at(ReleaseAt::BodyEnd);
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Bomb { given: false }))
    }));
    let mut body = service.oneshot(click("42")).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().unwrap().is_data());
    assert_eq!(store.taken(), 1);
    let sending = tokio::spawn(async move { body.frame().await.is_some() });
    assert!(sending.await.unwrap_err().is_panic());
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

//! Handlers that fail, panic, or take long.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::common::*;
use http::{Method, Request, Response, StatusCode};
use lock_core::LockManager;
use lock_core::test_util::{ManualClock, TestStore};
use lock_tower::LockContext;
use tower::{Layer, Service, ServiceExt, service_fn};

#[derive(Debug, PartialEq)]
struct CardDeclined(u32);

impl fmt::Display for CardDeclined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("declined")
    }
}

#[tokio::test]
async fn an_inner_error_is_unchanged_and_is_followed_by_no_cooldown() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks).cooldown(Duration::from_secs(3600));
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>(CardDeclined(7))
    }));
    assert_eq!(
        service.oneshot(click("42")).await.unwrap_err(),
        CardDeclined(7)
    );
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_handlers_panic_goes_on_in_the_caller_and_releases_the_lock() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks).cooldown(Duration::from_secs(3600));
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        if true {
            std::panic::panic_any(CardDeclined(8));
        }
        ok(StatusCode::OK)
    }));
    let request = tokio::spawn(service.oneshot(click("42")));
    let panic = request.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref(), Some(&CardDeclined(8)));
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_panic_in_the_call_itself_releases_the_lock_too() {
    let (locks, store) = embedded();
    let service = per_user_and_route(&locks).layer(service_fn(|_: Request<Body>| {
        if true {
            panic!("before there is a future");
        }
        async { Ok::<_, Infallible>(answer(StatusCode::OK)) }
    }));
    let request = tokio::spawn(service.oneshot(click("42")));
    assert!(request.await.unwrap_err().is_panic());
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn the_synchronous_part_of_a_call_runs_under_the_lock() {
    let (locks, _) = embedded();
    let inside = locks.clone();
    let service = per_user_and_route(&locks).layer(service_fn(move |_| {
        assert_eq!(inside.held().len(), 1);
        async { ok(StatusCode::OK) }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

/// Records, when it is dropped, how many keys are taken.
struct Witness {
    store: TestStore,
    taken: Arc<Mutex<Vec<usize>>>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.taken.lock().unwrap().push(self.store.taken());
    }
}

/// A service and a future with a witness each. A service that was not called has none.
struct Witnessed {
    make: Arc<dyn Fn() -> Witness + Send + Sync>,
    called: Option<Witness>,
}

impl Clone for Witnessed {
    fn clone(&self) -> Self {
        Self {
            make: Arc::clone(&self.make),
            called: None,
        }
    }
}

impl Service<Request<Body>> for Witnessed {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.called = Some((self.make)());
        let of_the_future = (self.make)();
        Box::pin(async move {
            let _of_the_future = of_the_future;
            assert_ne!(request.uri().path(), "/panics", "as asked for");
            ok(StatusCode::OK)
        })
    }
}

#[tokio::test]
async fn all_parts_of_a_handler_are_dropped_before_its_lock_is_released() {
    let (locks, store) = embedded();
    let taken: Arc<Mutex<Vec<usize>>> = Arc::default();
    let seen = Arc::clone(&taken);
    let make = move || Witness {
        store: store.clone(),
        taken: Arc::clone(&seen),
    };
    let service = per_user_and_route(&locks).layer(Witnessed {
        make: Arc::new(make),
        called: None,
    });
    for path in ["/orders", "/panics"] {
        let request = request(Method::POST, path, "42");
        let _ = tokio::spawn(service.clone().oneshot(request)).await;
        assert_eq!(
            std::mem::take(&mut *taken.lock().unwrap()),
            [1, 1],
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_handler_outlives_its_ttl_and_keeps_its_lock() {
    const TTL: Duration = Duration::from_secs(10);
    let clock = ManualClock::new();
    let manager = LockManager::builder("memory:").clock(clock.clone());
    let locks = manager.connect().await.unwrap();
    let layer = per_user_and_route(&locks).ttl(TTL);
    let service = layer.layer(service_fn(move |request: Request<Body>| {
        let (clock, lock) = (
            clock.clone(),
            request.extensions().get::<LockContext>().cloned(),
        );
        async move {
            let lock = lock.expect("a context");
            for _ in 0..9 {
                clock.advance(TTL / 3);
                until(|| lock.remaining() > TTL * 4 / 5).await; // the keeper has renewed it
                assert!(lock.is_valid());
            }
            ok(StatusCode::CREATED)
        }
    }));
    assert_eq!(
        send(&service, click("42")).await.status,
        StatusCode::CREATED
    );
}

#[test]
fn the_click_after_a_panic_runs_though_the_release_is_still_under_way() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (locks, _) = embedded();
    let service =
        per_user_and_route(&locks).layer(service_fn(|request: Request<Body>| async move {
            assert_ne!(request.uri().path(), "/panics", "as asked for");
            ok(StatusCode::OK)
        }));
    let panics = request(Method::POST, "/panics", "42");
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(service.clone().oneshot(panics))
    }));
    assert!(caught.is_err());
    let answer = runtime.block_on(send(&service, click("42")));
    assert_eq!(answer.status, StatusCode::OK);
}

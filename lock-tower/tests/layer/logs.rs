//! Log lines contain no secrets, and belong to the span of the request.

use std::time::Duration;

use crate::common::*;
use crate::log::{AllThreads, ThisThread};
use http::{Request, StatusCode};
use lock_core::LockManager;
use lock_core::test_util::ManualClock;
use lock_tower::Outage;
use tower::{Layer, ServiceExt, service_fn};
use tracing::Instrument;

/// Runs on one thread, so that the subscriber of this thread also sees the task of the handler.
#[tokio::test(flavor = "current_thread")]
async fn logs_hold_no_key_and_the_handler_logs_in_its_requests_span() {
    let log = ThisThread::listen();
    let (locks, store) = embedded();
    let seizes = store.clone();
    let layer = per_user_and_route(&locks).ttl(Duration::from_secs(2));
    let service = layer.layer(service_fn(move |request: Request<Body>| {
        let lock = request
            .extensions()
            .get::<lock_tower::LockContext>()
            .cloned();
        let seizes = seizes.clone();
        async move {
            tracing::info!("in the handler");
            seizes.seize("submit:alice:POST:/orders", Duration::from_secs(60));
            lock.expect("a context").lost().await;
            ok(StatusCode::OK)
        }
    }));
    let span = tracing::info_span!("of the request");
    async {
        assert_eq!(send(&service, click("alice")).await.status, StatusCode::OK);
        assert_eq!(
            send(&service, click("alice")).await.status,
            StatusCode::CONFLICT
        );
        store.fail(lock_core::ErrorKind::Misconfigured);
        send(&service, click("alice")).await;
    }
    .instrument(span)
    .await;

    let text = log.text();
    assert!(
        !text.contains("alice") && !text.contains("submit:"),
        "{text}"
    );
    let line = |words: &str| log.lines(words).first().cloned().unwrap_or_default();
    assert!(line("in the handler").contains("of the request"), "{text}");
    assert!(line("refused a request").contains("lock_busy"), "{text}");
    assert!(
        line("the release of a request's lock failed").contains("lock_lost"),
        "{text}"
    );
    assert!(
        line("can acquire its lock").contains("lock_misconfigured"),
        "{text}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn neither_logs_nor_answers_nor_keys_hold_a_secret() {
    let log = ThisThread::listen();
    let (locks, _) = embedded();
    let template =
        "k:<bearer>:<session.sid>:<cookie.cart|sha256>:<idempotency-key>:<form.token|sha256>";
    let layer = lock_tower::LockLayer::body_template(locks.clone(), template, 20).unwrap();
    let seen = locks.clone();
    let service = layer.layer(service_fn(
        move |_: Request<lock_tower::RequestBody<Body>>| {
            let key = seen.held()[0].key().to_owned();
            async move {
                assert!(!key.contains("secret"), "{key}");
                ok(StatusCode::OK)
            }
        },
    ));
    let request = |idempotency: &str, form: &'static str| {
        Request::post("/orders?secret=secret")
            .header("authorization", "Bearer secret")
            .header("cookie", "sid=secret; cart=secret")
            .header("idempotency-key", idempotency)
            .body(Body::from(form))
            .unwrap()
    };
    for (request, status) in [
        (request("1", "token=secret"), 200),
        (request("\"secret", "token=secret"), 400),
        (request("1", "secret=secret"), 400),
        (request("1", "token=secret&token=secrets"), 413),
        (request("1", "token=secret&token="), 400),
    ] {
        let answer = send(&service, request).await;
        assert_eq!(answer.status, status);
        assert!(!answer.text.contains("secret"), "{}", answer.text);
    }
    assert!(!log.text().contains("secret"), "{}", log.text());
    assert!(log.text().contains("lock_body_too_large"), "{}", log.text());
}

#[tokio::test(flavor = "current_thread")]
async fn shadow_mode_logs_each_request_that_it_would_refuse_with_the_reason() {
    let log = ThisThread::listen();
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks).name("orders").shadow();
    let service = layer
        .cooldown(Duration::from_secs(3600))
        .layer(answers(StatusCode::OK));
    for _ in 0..3 {
        send(&service, click("alice")).await;
    }
    let lines = log.lines("would have refused");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let told = |line: &String| line.contains("lock_cooling_down") && line.contains("orders");
    assert!(lines.iter().all(told), "{lines:?}");
    assert!(!log.text().contains("alice"));
}

#[tokio::test(flavor = "current_thread")]
async fn running_without_the_store_is_a_warning_each_time() {
    let log = ThisThread::listen();
    let (locks, store) = embedded();
    store.fail(lock_core::ErrorKind::Unavailable);
    let pass = per_user_and_route(&locks).on_outage(Outage::Pass);
    let local = LockManager::in_memory();
    let fallback = per_user_and_route(&locks).on_outage(Outage::Fallback(local));
    for layer in [pass, fallback] {
        send(&layer.layer(answers(StatusCode::OK)), click("42")).await;
    }
    let lines = log.lines("the lock store did not answer");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("WARN")), "{lines:?}");
}

/// Advances the clock step by step, so that the lock is renewed in between.
async fn hold_for(locks: &LockManager, clock: &ManualClock, span: Duration) {
    let step = Duration::from_secs(7);
    let until_then = locks.held()[0].held_for() + span;
    while locks.held()[0].held_for() < until_then {
        let left = until_then - locks.held()[0].held_for();
        clock.advance(step.min(left));
        until(|| locks.held()[0].remaining() > Duration::from_secs(22)).await;
    }
}

/// A handler that hangs blocks its key. The warning names its layer and route.
#[tokio::test]
async fn a_handler_that_holds_its_lock_for_ten_ttls_is_named_by_its_layer() {
    let log = AllThreads::listen();
    let (locks, clock) = with_clock().await;
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks).name("orders that hang");
    let service = layer.layer(gated(&gate));
    let first = tokio::spawn(service.oneshot(click("alice")));
    gate.entered(1).await;
    let words = "orders that hang";
    hold_for(&locks, &clock, Duration::from_secs(301)).await;
    let told = until(|| !log.lines(words).is_empty());
    let in_time = tokio::time::timeout(Duration::from_secs(5), told).await;
    in_time.expect("a line in the log");
    let line = log.lines(words).remove(0);
    let says = |word: &str| assert!(line.contains(word), "{word}: {line}");
    ["WARN", TEMPLATE, "POST", "301s", "max_hold"]
        .into_iter()
        .for_each(says);
    assert!(!line.contains("alice"), "{line}");
    gate.let_through(1);
    first.await.unwrap().unwrap();
}

//! Duplicates that wait, and the cooldown that begins meanwhile.

use std::pin::Pin;
use std::time::Duration;

use crate::common::*;
use http::{Method, Request, StatusCode};
use lock_core::{LockManager, Wait};
use lock_tower::{Disconnect, LockLayer, LockService, RejectionKind};
use tower::{Layer, ServiceExt, service_fn};

const COOLDOWN: Duration = Duration::from_millis(200);

fn waiting(locks: &LockManager) -> LockLayer {
    per_user_and_route(locks).wait(Wait::Forever)
}

/// Polls a request once, so that it waits in line.
fn in_line<F: Future>(request: F) -> Pin<Box<F>> {
    let mut request = Box::pin(request);
    assert!(poll_once(request.as_mut()).is_pending());
    request
}

/// Lets one request run while three others wait, and returns the refusals of those.
async fn refusals_of_waiters<S: Handler>(service: LockService<S>, gate: &Gate) -> Vec<Answer> {
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let waiters: Vec<_> = (0..3)
        .map(|_| in_line(service.clone().oneshot(click("42"))))
        .collect();
    gate.let_through(9);
    first.await.expect("no panic").expect("an answer");
    let mut refusals = Vec::new();
    for waiter in waiters {
        refusals.push(read(in_time(waiter).await.expect("an answer")).await);
    }
    refusals
}

#[tokio::test]
async fn waiting_duplicates_are_refused_when_the_cooldown_begins_and_do_not_run() {
    let settings: [fn(LockLayer) -> LockLayer; 3] = [
        |layer| layer.cooldown(COOLDOWN),
        |layer| layer.min_interval(Duration::from_secs(60)),
        |layer| layer.cooldown_with(|_| COOLDOWN),
    ];
    for cools in settings {
        let (locks, store) = embedded();
        let gate = Gate::closed();
        let service = cools(waiting(&locks)).layer(gated(&gate));
        for refused in refusals_of_waiters(service, &gate).await {
            assert_eq!(refused.status, StatusCode::CONFLICT);
            assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
            assert!(refused.retry_after.is_some_and(|seconds| seconds > 0));
        }
        assert_eq!((gate.entered_so_far(), store.waiting()), (1, 0));
    }
}

#[tokio::test]
async fn a_duplicate_that_would_wait_and_comes_during_the_cooldown_is_refused_at_once() {
    let (locks, clock) = with_clock().await;
    let layer = waiting(&locks).cooldown(COOLDOWN);
    let service = layer.layer(answers(StatusCode::OK));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    assert_eq!(refused.problem()["retry_after_ms"], 200);
    clock.advance(COOLDOWN);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn waiting_duplicates_run_after_a_request_that_has_no_cooldown() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let service = waiting(&locks)
        .cooldown(COOLDOWN)
        .layer(service_fn(move |_: Request<Body>| {
            let gate = at_gate.clone();
            async move {
                gate.pass().await;
                ok(StatusCode::BAD_REQUEST)
            }
        }));
    for answer in refusals_of_waiters(service, &gate).await {
        assert_eq!(
            (answer.status, answer.kind()),
            (StatusCode::BAD_REQUEST, None)
        );
    }
    assert_eq!((gate.entered_so_far(), store.taken()), (4, 0));
}

#[tokio::test]
async fn waiting_duplicates_are_refused_by_the_cooldown_that_a_handler_requests() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let handler = service_fn(move |request: Request<Body>| {
        context(&request).cool_down(COOLDOWN);
        let gate = at_gate.clone();
        async move {
            gate.pass().await;
            ok(StatusCode::INTERNAL_SERVER_ERROR)
        }
    });
    for refused in refusals_of_waiters(waiting(&locks).layer(handler), &gate).await {
        assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    }
    assert_eq!(gate.entered_so_far(), 1);
}

#[tokio::test]
async fn waiting_duplicates_are_refused_while_the_key_of_a_dropped_handler_is_held() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = waiting(&locks)
        .ttl(COOLDOWN)
        .on_disconnect(Disconnect::HoldUntilTtl);
    let service = layer.layer(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let waiter = in_line(service.clone().oneshot(click("42")));
    first.abort();
    gate.let_through(9);
    let refused = read(in_time(waiter).await.expect("an answer")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    assert_eq!(gate.entered_so_far(), 1);
}

/// Each setting that begins a cooldown.
const COOLDOWNS: [fn(LockLayer) -> LockLayer; 3] = [
    |layer| layer.cooldown(COOLDOWN),
    |layer| layer.min_interval(COOLDOWN),
    |layer| layer.cooldown_with(|_| COOLDOWN),
];

/// Each of several keys would have to say that it cools down.
#[tokio::test]
async fn several_keys_with_a_wait_and_a_cooldown_are_invalid() {
    for cools in COOLDOWNS {
        let (locks, _) = embedded();
        let two = LockLayer::template(locks, "account:<query.from>").expect("it parses");
        let two = two.and("account:<query.to>").expect("it parses");
        assert!(cools(two.clone()).checked().is_ok());
        let error = cools(two).wait(COOLDOWN).checked().expect_err("both");
        assert!(error.to_string().contains("several keys"), "{error}");
    }
}

/// A reader is no duplicate of the writer whose cooldown would refuse it.
#[tokio::test]
async fn readers_beside_a_cooldown_are_invalid() {
    for cools in COOLDOWNS {
        let (locks, _) = embedded();
        let layer = cools(per_user_and_route(&locks));
        let error = layer.read_methods([Method::GET]).checked();
        let error = error.expect_err("readers").to_string();
        assert!(error.contains("`read_methods`"), "{error}");
    }
}

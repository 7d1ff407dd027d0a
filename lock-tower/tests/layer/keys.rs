//! Requests with a key, without a key, and with an unusual key.

use crate::common::*;
use http::{HeaderValue, Request, StatusCode};
use lock_core::{LockKey, lock_key};
use lock_tower::{LockLayer, MissingKey, RejectionKind};
use tower::{Layer, ServiceExt, service_fn};

fn anonymous() -> Request<Body> {
    Request::post("/orders").body(Body::default()).unwrap()
}

#[tokio::test]
async fn a_request_without_a_key_is_a_400_that_says_what_is_missing() {
    let (locks, _) = embedded();
    let service = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    let refused = send(&service, anonymous()).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.kind(), Some(RejectionKind::KeyMissing));
    assert_eq!(refused.problem()["code"], "lock_key_missing");
    assert!(
        refused.text.contains("header.x-user-id"),
        "{}",
        refused.text
    );
    assert_eq!(refused.retry_after, None);
}

#[tokio::test]
async fn requests_without_a_key_that_may_pass_share_no_lock_and_have_none() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let layer = per_user_and_route(&locks).on_missing_key(MissingKey::Pass);
    let service = layer.layer(service_fn(move |request: Request<Body>| {
        let gate = at_gate.clone();
        async move {
            gate.pass().await;
            assert!(!context(&request).is_locked());
            ok(StatusCode::OK)
        }
    }));
    let one = tokio::spawn(service.clone().oneshot(anonymous()));
    let two = tokio::spawn(service.clone().oneshot(anonymous()));
    gate.entered(2).await;
    assert_eq!(store.taken(), 0);
    gate.let_through(2);
    assert_eq!(one.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(two.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_header_that_comes_twice_and_differs_is_a_400_even_where_none_would_pass() {
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks).on_missing_key(MissingKey::Pass);
    let service = layer.layer(answers(StatusCode::OK));
    let mut twice = click("42");
    twice
        .headers_mut()
        .append("x-user-id", HeaderValue::from_static("43"));
    let refused = send(&service, twice).await;
    assert_eq!(refused.kind(), Some(RejectionKind::KeyAmbiguous));
    assert_eq!(refused.problem()["code"], "lock_key_ambiguous");
    assert!(!refused.text.contains("42") && !refused.text.contains("43"));
}

/// Only HTTP/1 trims the blanks around a header's value.
#[tokio::test]
async fn a_value_of_blanks_identifies_no_user() {
    let (locks, _) = embedded();
    for (template, path) in [
        ("k:<header.x-user-id>", "/"),
        ("k:<header.x-user-id?>", "/"),
        ("k:<query.user>", "/?user=%20+%09"),
        ("k:<cookie.user>", "/"),
        ("k:<bearer>", "/"),
        ("k:<idempotency-key>", "/"),
    ] {
        let layer = LockLayer::template(locks.clone(), template).unwrap();
        let service = layer.layer(answers(StatusCode::OK));
        for blank in ["", " ", " \t "] {
            let request = Request::post(path)
                .header("x-user-id", blank)
                .header("cookie", format!("user={blank}"))
                .header("authorization", format!("Bearer {blank}"))
                .header("idempotency-key", blank);
            let refused = send(&service, request.body(Body::default()).unwrap()).await;
            let kind = refused.kind();
            assert_eq!(
                kind,
                Some(RejectionKind::KeyMissing),
                "{template} {blank:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_value_too_long_for_a_key_is_locked_by_its_digest() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = per_user_and_route(&locks).layer(gated(&gate));
    let long = |length| click(&"x".repeat(length));
    let first = tokio::spawn(service.clone().oneshot(long(2000)));
    let other = tokio::spawn(service.clone().oneshot(long(2001)));
    gate.entered(2).await;
    let again = send(&service, long(2000)).await;
    assert_eq!(again.kind(), Some(RejectionKind::InFlight));
    for held in locks.held() {
        assert!(held.key().starts_with("submit:%#"), "{}", held.key());
    }
    gate.let_through(2);
    first.await.unwrap().unwrap();
    other.await.unwrap().unwrap();
}

#[tokio::test]
async fn values_that_hold_the_separator_do_not_exclude_one_another() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = LockLayer::template(locks, "k:<header.a>:<header.b>").unwrap();
    let service = layer.layer(gated(&gate));
    let send = |a: &str, b: &str| {
        let request = Request::post("/").header("a", a).header("b", b);
        tokio::spawn(
            service
                .clone()
                .oneshot(request.body(Body::default()).unwrap()),
        )
    };
    let running = [send("x:y", "z"), send("x", "y:z"), send("x%3Ay", "z")];
    gate.entered(3).await;
    gate.let_through(3);
    for response in running {
        assert_eq!(response.await.unwrap().unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn two_spellings_of_one_path_exclude_one_another() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = LockLayer::template(locks, "k:<path>").unwrap();
    let service = layer.layer(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(request(
        http::Method::POST,
        "/users/1",
        "42",
    )));
    gate.entered(1).await;
    let second = send(&service, request(http::Method::POST, "/users/%31", "42")).await;
    assert_eq!(second.kind(), Some(RejectionKind::InFlight));
    gate.let_through(1);
    first.await.unwrap().unwrap();
}

#[derive(Clone)]
struct User {
    id: u64,
}

#[tokio::test]
async fn a_closure_makes_the_key_from_the_authenticated_user() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = LockLayer::from_fn(locks.clone(), |request| {
        let user = request.extensions.get::<User>()?;
        Some(lock_key!("submit:<user.id>"))
    });
    let service = layer.layer(gated(&gate));
    let mut known = anonymous();
    known.extensions_mut().insert(User { id: 7 });

    assert_eq!(
        send(&service, anonymous()).await.kind(),
        Some(RejectionKind::KeyMissing)
    );
    let running = tokio::spawn(service.clone().oneshot(known));
    gate.entered(1).await;
    let held: Vec<_> = locks
        .held()
        .iter()
        .map(|held| held.key().to_owned())
        .collect();
    assert_eq!(held, ["submit:7"]);
    gate.let_through(1);
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_closures_unusable_key_is_a_400_and_never_runs() {
    let (locks, _) = embedded();
    for unusable in [
        LockKey::from(""),
        LockKey::from("submit:<user>"),
        LockKey::from("!f"),
    ] {
        let layer = LockLayer::from_fn(locks.clone(), move |_| Some(unusable.clone()));
        let service = layer.layer(answers(StatusCode::OK));
        assert_eq!(
            send(&service, anonymous()).await.kind(),
            Some(RejectionKind::KeyInvalid)
        );
    }
}

//! Two callers never get each other's answers.

use crate::common::embedded;
use crate::replay::steps::*;
use http::Request;
use lock_core::{ErrorKind, lock_key};
use lock_tower::{KeyTemplate, LockLayer, Replay, key};
use tower::Layer;

#[tokio::test]
async fn two_users_with_one_key_get_their_own_answers() {
    let (locks, _) = embedded();
    let runs = Runs::default();
    let service = paying(&locks, Replay::default()).layer(numbered(&runs));
    send(&service, request("alice", "k1", ""))
        .await
        .is_first("payment 1");
    send(&service, request("bob", "k1", ""))
        .await
        .is_first("payment 2");
    send(&service, request("alice", "k1", ""))
        .await
        .is_replay("payment 1");
    send(&service, request("bob", "k1", ""))
        .await
        .is_replay("payment 2");
}

#[tokio::test]
async fn a_key_without_an_authenticated_caller_is_refused_when_the_layer_is_made() {
    let (locks, _) = embedded();
    let of_template = |text: &str| {
        let mut template = KeyTemplate::new(text);
        if text.contains("<ext.user") {
            template = template.extension("user", |user: &User| user.0);
        }
        LockLayer::template(locks.clone(), template)
            .unwrap()
            .replay(Replay::default())
    };
    for anonymous in [
        "pay:<idempotency-key>",
        "pay:<header.x-user-id>:<idempotency-key>",
        "pay:<cookie.sid>:<idempotency-key>",
        "pay:<peer>:<idempotency-key>",
        "pay:<ext.user?>:<idempotency-key>",
        "pay:<bearer?>:<idempotency-key>",
        "pay:<session.sid?|sha256>:<idempotency-key>",
    ] {
        let error = of_template(anonymous).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{anonymous}");
        assert!(error.to_string().contains("caller_is_in_key"), "{error}");
    }
    for known in [
        "pay:<ext.user>:<idempotency-key>",
        "pay:<ext.user|sha256>:<idempotency-key>",
        "pay:<bearer>:<idempotency-key>",
        "pay:<header.x-tenant>:<session.sid>:<idempotency-key>",
    ] {
        assert!(of_template(known).is_ok(), "{known}");
    }
    let in_body = "pay:<form.user>:<idempotency-key>";
    let layer = LockLayer::body_template(locks, in_body, 1024).unwrap();
    assert!(layer.replay(Replay::default()).is_err());
}

/// All requests without the part would share one record, so the second purchase would never run.
#[tokio::test]
async fn a_key_with_an_optional_part_is_refused_when_the_layer_is_made() {
    let (locks, _) = embedded();
    for optional in [
        "pay:<bearer>:<idempotency-key?>",
        "pay:<bearer>:<idempotency-key?|sha256>",
        "pay:<bearer>:<header.x-request-id?>",
        "pay:<bearer>:<form.order?>",
        "pay:<bearer>:<bearer?>:<idempotency-key>",
    ] {
        for replay in [Replay::default(), Replay::default().caller_is_in_key()] {
            let layer = LockLayer::body_template(locks.clone(), optional, 1024).unwrap();
            let error = layer.replay(replay).expect_err(optional);
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("optional"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_key_that_the_layer_cannot_judge_needs_a_statement() {
    let (locks, _) = embedded();
    let closure = || {
        LockLayer::from_fn(locks.clone(), |request| {
            let user = request.extensions.get::<User>()?;
            Some(lock_key!("pay:<user.0>"))
        })
    };
    let extractor = || LockLayer::extractor(locks.clone(), (key::bearer(), key::idempotency_key()));
    let header = || LockLayer::template(locks.clone(), "pay:<header.x-user-id>").unwrap();
    assert!(closure().replay(Replay::default()).is_err());
    assert!(extractor().replay(Replay::default()).is_err());
    assert!(header().replay(Replay::default()).is_err());

    let stated = || Replay::default().caller_is_in_key();
    assert!(extractor().replay(stated()).is_ok());
    assert!(header().replay(stated()).is_ok());
    let runs = Runs::default();
    let service = closure().replay(stated()).unwrap().layer(numbered(&runs));
    send(&service, pay("")).await.is_first("payment 1");
    send(&service, pay("")).await.is_replay("payment 1");
}

#[tokio::test]
async fn the_key_of_a_request_is_told_to_the_operator() {
    let (locks, _) = embedded();
    let layer = paying(&locks, Replay::default());
    let key = layer.key_of(pay("")).await.unwrap();
    assert_eq!(key.as_str(), Some("pay:alice:k1"));
    let anonymous = Request::post("/").body(String::new()).unwrap();
    assert!(layer.key_of(anonymous).await.is_err());
    let of_body = LockLayer::body_template(locks.clone(), "k:<form.token>", 99).unwrap();
    let key = of_body.key_of(pay("token=t1")).await.unwrap();
    assert_eq!(key.as_str(), Some("k:t1"));
    let of_head = LockLayer::template(locks, "k:<idempotency-key>").unwrap();
    let head = Request::post("/").header("idempotency-key", "k1");
    let key = of_head.key_of(head.body(()).unwrap()).await.unwrap();
    assert_eq!(key.as_str(), Some("k:k1"));
}

//! The answer that a duplicate gets.

use std::time::Duration;

use crate::common::{Gate, all_released, embedded, gated, with_clock};
use crate::replay::steps::*;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use lock_core::LockManager;
use lock_tower::{LockLayer, RejectionKind, Replay};
use tower::{Layer, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_duplicate_gets_the_first_answer_and_its_handler_runs_once() {
    let (locks, store) = embedded();
    let runs = Runs::default();
    let service = paying(&locks, Replay::default()).layer(numbered(&runs));
    let first = send(&service, pay("{}")).await;
    first.is_first("payment 1");
    assert_eq!(store.taken(), 1, "the record takes the place of the lock");
    for _ in 0..3 {
        let second = send(&service, pay("{}")).await;
        second.is_replay("payment 1");
        assert_eq!(second.status, StatusCode::CREATED);
    }
    let other = send(&service, request("alice", "k2", "{}")).await;
    other.is_first("payment 2");
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn a_process_that_has_run_nothing_repeats_the_answer_of_another_one() {
    let first = LockManager::connect("memory:replayed-elsewhere")
        .await
        .unwrap();
    let second = LockManager::connect("memory:replayed-elsewhere")
        .await
        .unwrap();
    let runs = Runs::default();
    let layer = |locks| paying(locks, Replay::default()).layer(numbered(&runs));
    send(&layer(&first), pay("{}")).await.is_first("payment 1");
    send(&layer(&second), pay("{}"))
        .await
        .is_replay("payment 1");
}

#[tokio::test]
async fn a_duplicate_in_flight_is_refused_before_its_body_is_read() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let held = gate.clone();
    let service = paying(&locks, Replay::default()).layer(service_fn(move |_: Received| {
        let gate = held.clone();
        async move {
            gate.pass().await;
            Ok::<_, std::convert::Infallible>(created("paid"))
        }
    }));
    let first = tokio::spawn(service.clone().oneshot(pay("{}")));
    gate.entered(1).await;
    let second = send(&service, pay("another body")).await;
    second.is_refused(RejectionKind::InFlight);
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(second.header("retry-after"), Some("1"));
    gate.let_through(1);
    first.await.unwrap().unwrap();
    send(&service, pay("{}")).await.is_replay("paid");
}

#[tokio::test]
async fn an_answer_is_repeated_until_its_lifetime_is_over() {
    let (locks, clock) = with_clock().await;
    let runs = Runs::default();
    let layer = paying(&locks, Replay::default().lasting(HOUR));
    let service = layer.layer(numbered(&runs));
    send(&service, pay("")).await.is_first("payment 1");
    clock.advance(HOUR - Duration::from_millis(1));
    send(&service, pay("")).await.is_replay("payment 1");
    clock.advance(Duration::from_millis(1));
    send(&service, pay("")).await.is_first("payment 2");
}

#[tokio::test]
async fn the_methods_of_the_layer_are_recorded_and_others_pass() {
    let (locks, store) = embedded();
    let runs = Runs::default();
    let layer = paying(&locks, Replay::default());
    let service = layer.clone().layer(numbered(&runs));
    let sent = |method: Method| {
        let mut request = pay("");
        *request.method_mut() = method;
        request
    };
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        for _ in 0..2 {
            assert!(!send(&service, sent(method.clone())).await.replayed);
        }
    }
    assert_eq!((runs.count(), store.taken()), (6, 0));
    for (key, method) in [
        ("post", Method::POST),
        ("put", Method::PUT),
        ("patch", Method::PATCH),
        ("delete", Method::DELETE),
    ] {
        let sent = || {
            let mut request = request("alice", key, "");
            *request.method_mut() = method.clone();
            request
        };
        let first = send(&service, sent()).await;
        assert!(!first.replayed, "{key}");
        send(&service, sent()).await.is_replay(&first.text);
    }

    let service = layer.methods([Method::PUT]).layer(numbered(&runs));
    let put = |key| {
        let mut request = request("alice", key, "");
        *request.method_mut() = Method::PUT;
        request
    };
    send(&service, put("k2")).await.is_first("payment 11");
    send(&service, put("k2")).await.is_replay("payment 11");
}

#[tokio::test]
async fn a_request_without_a_key_is_refused_and_a_layer_without_replay_refuses_duplicates() {
    let (locks, _) = embedded();
    let runs = Runs::default();
    let service = paying(&locks, Replay::default()).layer(numbered(&runs));
    let anonymous = Request::post("/payments").header("idempotency-key", "k1");
    let anonymous = anonymous.body(Full::default()).unwrap();
    let refused = send(&service, anonymous).await;
    refused.is_refused(RejectionKind::KeyMissing);
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);

    send(&service, pay("")).await.is_first("payment 1");
    let older = LockLayer::template(locks, per_user()).unwrap();
    let refused = send(&older.layer(gated(&Gate::closed())), pay("")).await;
    refused.is_refused(RejectionKind::Done);
    assert_eq!(refused.header("retry-after"), None);
}

#[tokio::test]
async fn a_key_may_come_from_the_body_and_the_handler_reads_the_body_again() {
    let (locks, _) = embedded();
    let template = lock_tower::KeyTemplate::new("pay:<ext.user>:<form.token>")
        .extension("user", |user: &User| user.0);
    let layer = LockLayer::body_template(locks, template, 1024).unwrap();
    let layer = layer.replay(Replay::default()).unwrap();
    let service = layer.layer(service_fn(|request: Received| async {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(body)))
    }));
    let form = "token=t1&cents=5";
    send(&service, pay(form)).await.is_first(form);
    send(&service, pay(form)).await.is_replay(form);
    let changed = send(&service, pay("token=t1&cents=6")).await;
    changed.is_refused(RejectionKind::KeyReused);
}

#[tokio::test]
async fn in_shadow_mode_answers_are_recorded_and_none_is_repeated() {
    let (locks, store) = embedded();
    let runs = Runs::default();
    let layer = paying(&locks, Replay::default());
    let shadow = layer.clone().shadow().layer(numbered(&runs));
    send(&shadow, pay("")).await.is_first("payment 1");
    send(&shadow, pay("")).await.is_first("payment 2");
    all_released(&locks).await;
    assert_eq!(store.taken(), 1);
}

#[tokio::test]
async fn a_problem_names_the_documentation_of_the_service() {
    let (locks, _) = embedded();
    let page = "https://api.example.com/idempotency";
    let layer = paying(&locks, Replay::default()).documentation(page);
    let service = layer.clone().layer(numbered(&Runs::default()));
    send(&service, pay("1")).await;
    let refused = send(&service, pay("2")).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let link = "<https://api.example.com/idempotency>; rel=\"describedby\"";
    assert_eq!(refused.header("link"), Some(link));
    let problem: serde_json::Value = serde_json::from_str(&refused.text).unwrap();
    assert_eq!(problem["type"], format!("{page}#lock_key_reused"));
    assert_eq!(problem["status"], 422);
    for wrong in ["no uri", "\n", "https://api.example.com/\"x"] {
        assert!(layer.clone().documentation(wrong).checked().is_err());
    }
}

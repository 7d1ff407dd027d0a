//! Settings out of bounds, which the layer reports when it is put around a service.

use std::time::Duration;

use crate::common::*;
use crate::log::ThisThread;
use http::{Method, StatusCode};
use lock_core::{ErrorKind, LockManager};
use lock_tower::{LockContext, LockLayer, Outage, ProbeError, RejectionKind, probe};
use tower::{Layer, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

/// A manager with a `max_ttl` of one minute; that of `redlock://` is ten minutes.
async fn of_a_minute() -> LockManager {
    let manager = LockManager::builder("memory:").max_ttl(Duration::from_secs(60));
    manager.connect().await.expect("a manager")
}

#[tokio::test]
async fn settings_without_an_effect_are_invalid() {
    let changes: [Change; 2] = [
        ("no method", |layer| layer.methods([])),
        ("`permits`", |layer| layer.full_status(StatusCode::CONFLICT)),
    ];
    for (why, change) in changes {
        let (locks, _) = embedded();
        let error = change(per_user_and_route(&locks)).checked().expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
    let (locks, _) = embedded();
    let readers = per_user_and_route(&locks).methods([]);
    assert!(readers.read_methods([Method::GET]).checked().is_ok());
}

/// The code of a refusal becomes the fragment of its type.
#[tokio::test]
async fn a_documentation_with_a_fragment_is_invalid() {
    let (locks, _) = embedded();
    let page = "https://api.example.com/idempotency";
    let layer = per_user_and_route(&locks);
    assert!(layer.clone().documentation(page).checked().is_ok());
    assert!(
        layer
            .clone()
            .problem_types(format!("{page}#"))
            .checked()
            .is_ok()
    );
    for wrong in [
        layer.clone().documentation(format!("{page}#keys")),
        layer.problem_types(format!("{page}#keys#")),
    ] {
        let error = wrong.checked().expect_err("two fragments").to_string();
        assert!(error.contains('#'), "{error}");
    }
}

type Change = (&'static str, fn(LockLayer) -> LockLayer);

fn changes() -> Vec<Change> {
    vec![
        ("cooldown", |layer| layer.cooldown(HOUR)),
        ("min_interval", |layer| layer.min_interval(HOUR)),
        ("endless cooldown", |layer| layer.cooldown(Duration::MAX)),
        ("ttl", |layer| layer.ttl(HOUR)),
        ("short ttl", |layer| layer.ttl(Duration::from_millis(9))),
        ("max_hold", |layer| layer.max_hold(Duration::ZERO)),
        ("acquire_timeout", |layer| {
            layer.acquire_timeout(Duration::ZERO)
        }),
    ]
}

#[tokio::test]
async fn a_layer_with_settings_out_of_bounds_refuses_every_request() {
    for (name, change) in changes() {
        let locks = of_a_minute().await;
        let gate = Gate::closed();
        gate.let_through(1);
        let layer = change(per_user_and_route(&locks));
        let refused = send(&layer.layer(gated(&gate)), click("42")).await;
        assert_eq!(refused.kind(), Some(RejectionKind::Invalid), "{name}");
        assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(refused.problem()["code"], "lock_invalid");
        assert_eq!(gate.entered_so_far(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_cooldown_above_the_fallbacks_bound_is_out_of_bounds_too() {
    let (locks, _) = embedded();
    let fallback = Outage::Fallback(of_a_minute().await);
    let layer = per_user_and_route(&locks).cooldown(HOUR);
    let service = layer.on_outage(fallback).layer(answers(StatusCode::OK));
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::Invalid));
}

#[tokio::test(flavor = "current_thread")]
async fn settings_out_of_bounds_are_an_error_in_the_log_before_the_first_request() {
    let log = ThisThread::listen();
    let locks = of_a_minute().await;
    let layer = per_user_and_route(&locks).name("orders").cooldown(HOUR);
    // axum clones the layer for each route.
    for _ in 0..3 {
        let _ = layer.layer(answers(StatusCode::OK));
    }
    let lines = log.lines("ERROR");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("orders") && lines[0].contains("max_ttl"),
        "{lines:?}"
    );
}

/// The work is done by then, so the cooldown is shortened with a line in the log.
#[tokio::test(flavor = "current_thread")]
async fn a_cooldown_that_is_only_known_with_the_answer_is_cut_with_a_warning() {
    for by_handler in [true, false] {
        let log = ThisThread::listen();
        let locks = of_a_minute().await;
        let layer = per_user_and_route(&locks);
        let layer = match by_handler {
            true => layer,
            false => layer.cooldown_with(|_| HOUR),
        };
        let service = layer.layer(service_fn(move |request: http::Request<Body>| {
            let lock: LockContext = context(&request);
            if by_handler {
                lock.cool_down(HOUR);
            }
            async { ok(StatusCode::OK) }
        }));
        assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
        let refused = send(&service, click("42")).await;
        assert_eq!(refused.retry_after, Some(60));
        let lines = log.lines("max_ttl");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("WARN"), "{lines:?}");
    }
}

#[tokio::test]
async fn checked_finds_settings_that_are_out_of_bounds() {
    let locks = of_a_minute().await;
    for (name, change) in changes() {
        let error = change(per_user_and_route(&locks)).checked().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}");
    }
    let body = || LockLayer::body_template(locks.clone(), "k:<body>", 10).unwrap();
    let limitless = LockLayer::body_template(locks.clone(), "k:<body>", 0).unwrap();
    for (what, error) in [
        ("body", body().body_timeout(Duration::ZERO).checked().err()),
        ("body", limitless.checked().err()),
        (
            "retry_hint",
            body().retry_hint(Duration::ZERO).checked().err(),
        ),
        ("types", body().problem_types("no uri").checked().err()),
        ("types", body().problem_types("").checked().err()),
    ] {
        let error = error.expect(what).to_string();
        assert!(error.contains(what), "{error}");
    }
    // A corrected setting is no error.
    let layer = per_user_and_route(&locks).cooldown(HOUR).checked();
    assert!(layer.is_err());
    let layer = per_user_and_route(&locks).cooldown(HOUR);
    let _ = layer.layer(answers(StatusCode::OK));
    let layer = layer.cooldown(Duration::from_secs(60)).checked().unwrap();
    let service = layer.layer(answers(StatusCode::OK));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_probe_finds_settings_that_are_out_of_bounds() {
    let locks = of_a_minute().await;
    for (name, change) in changes() {
        let service = change(per_user_and_route(&locks)).layer(answers(StatusCode::OK));
        let error = probe(service, click("42")).await.unwrap_err();
        assert!(matches!(error, ProbeError::Invalid { .. }), "{name}");
        assert!(error.to_string().contains("out of bounds: "), "{error}");
    }
}

#[tokio::test]
async fn a_layer_with_invalid_settings_asks_no_store() {
    let locks = of_a_minute().await;
    let store = locks.test_store().expect("an embedded store");
    store.fail(ErrorKind::Unavailable);
    let layer = per_user_and_route(&locks).cooldown(HOUR);
    let refused = send(&layer.layer(answers(StatusCode::OK)), click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::Invalid));
}

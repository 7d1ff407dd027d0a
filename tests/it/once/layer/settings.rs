//! Settings of the layer, and several keys.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use lock_core::LockManager;
use lock_tests::wait;
use lock_tower::{LockLayer, Replay};

use super::stage::{MINUTE, Stage, app, key, pay, request, send};
use crate::once::suite::Fixture;

pub(super) async fn shadow_is_invalid<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let replay = || Replay::in_database(stage.db.clone());
    let plain = || LockLayer::template(stage.locks.clone(), key()).expect("a template");
    let first = plain().shadow().replay(replay());
    let then = plain().replay(replay()).expect("valid").shadow().checked();
    for layer in [first, then] {
        let error = layer.expect_err("shadow");
        assert!(
            error.is_invalid() && error.to_string().contains("shadow"),
            "{error}"
        );
    }
    let reply = send(&app(stage.layer().shadow(), pay::<F>), request("")).await;
    reply.is_refused(500, "lock_invalid");
    stage.has(0, 0).await;
}

pub(super) async fn a_life_is_between_a_minute_and_ten_years<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let day = 24 * 60 * MINUTE;
    let lasting = |life| {
        let replay = Replay::in_database(stage.db.clone()).lasting(life);
        let layer = LockLayer::template(stage.locks.clone(), key()).expect("a template");
        layer.replay(replay)
    };
    for life in [MINUTE, day, 3_650 * day] {
        let _ = lasting(life).expect("a valid life");
    }
    let millisecond = Duration::from_millis(1);
    for life in [
        Duration::ZERO,
        millisecond,
        MINUTE - millisecond,
        3_651 * day,
    ] {
        assert!(lasting(life).expect_err("out of bounds").is_invalid());
    }
    // The store of the locks does not matter.
    let locks = LockManager::builder("memory:").max_ttl(MINUTE);
    let locks = locks.connect().await.expect("a manager");
    let layer = || LockLayer::template(locks.clone(), key()).expect("a template");
    let (in_key, in_database) = (Replay::default(), Replay::in_database(stage.db.clone()));
    assert!(layer().replay(in_key).expect_err("too long").is_invalid());
    let _ = layer().replay(in_database).expect("a valid life");
}

pub(super) async fn several_keys_are_one_operation<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let of = |replay| {
        let layer = LockLayer::template(stage.locks.clone(), "from:<query.from>").expect("valid");
        let layer = layer.and("to:<query.to>").expect("valid");
        layer.and(key()).expect("valid").replay(replay)
    };
    assert!(of(Replay::default()).expect_err("one record").is_invalid());
    let layer = of(Replay::in_database(stage.db.clone())).expect("one operation");
    let app = app(layer.acquire_timeout(wait::PATIENCE), pay::<F>);
    let transfer = |uri| {
        let request = Request::post(uri).header("idempotency-key", "k");
        request.body(Body::from("tea")).expect("a request")
    };
    let first = send(&app, transfer("/payments?from=1&to=2")).await;
    first.is(201);
    send(&app, transfer("/payments?from=1&to=2"))
        .await
        .repeats(&first);
    send(&app, transfer("/payments?from=1&to=3")).await.is(201);
    stage.has(2, 2).await;

    // An optional part of a second key is as bad as one of the first.
    let layer = LockLayer::template(stage.locks.clone(), key()).expect("valid");
    let layer = layer.and("to:<query.to?>").expect("valid");
    let refused = layer.replay(Replay::in_database(stage.db.clone()));
    assert!(refused.expect_err("an optional part").is_invalid());
}

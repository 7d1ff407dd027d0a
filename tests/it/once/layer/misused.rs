//! Handlers and layers that are not as they must be.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::{Response, StatusCode};
use lock_core::OperationId;
use lock_core::once::Claim;
use lock_tests::wait;
use lock_tower::{LockLayer, Once, Refused, Replay};

use super::log::ThisThread;
use super::stage::{Db, MINUTE, Stage, User, app, effect, key, named, pay, request, send};
use super::staged::Staged;
use crate::once::suite::Fixture;

/// The key is free when the transaction that was lent is dropped.
pub(super) async fn a_transaction_that_left_the_handler_is_500<F: Fixture + 'static>() {
    let log = ThisThread::listen();
    let stage = Stage::<F>::start().await;
    let kept = Arc::new(Mutex::new(None));
    let shelf = Arc::clone(&kept);
    let lending = move |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        *shelf.lock().expect("a shelf") = Some((tx, once));
        Ok::<_, Refused>((StatusCode::CREATED, "paid"))
    };
    let lent = send(&app(stage.layer(), lending), request("")).await;
    lent.is_refused(500, "lock_transaction_lent").retries(None);
    assert_eq!(log.lines("while its transaction was still in use").len(), 1);
    // The handle alone must not keep the transaction open.
    let (tx, handle) = kept.lock().expect("a shelf").take().expect("a guard");
    drop(tx);
    stage.has(0, 0).await;

    let paying = app(stage.layer(), pay::<F>);
    wait::eventually("the key is free", async || {
        send(&paying, request("")).await.status == StatusCode::CREATED
    })
    .await;
    stage.has(1, 1).await;
    drop(handle);
}

/// The claim is committed with the effect. The layer writes the answer behind it, in a commit of its own.
pub(super) async fn a_handler_that_commits_by_itself_has_one_effect_and_its_answer_is_kept<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let committing = |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        let committed = F::execute(&mut tx, "COMMIT").await;
        committed.expect("an open transaction");
        Ok::<_, Refused>((StatusCode::CREATED, "paid"))
    };
    let committing = app(stage.layer(), committing);
    let first = send(&committing, request("")).await;
    first.is(201);
    send(&committing, request("")).await.repeats(&first);
    stage.has(1, 1).await;
}

pub(super) async fn a_handler_may_answer_an_error_while_its_transaction_is_lent<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let kept = Arc::new(Mutex::new(None));
    let shelf = Arc::clone(&kept);
    let lending = move |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        *shelf.lock().expect("a shelf") = Some(tx);
        Ok::<_, Refused>((StatusCode::BAD_REQUEST, "no"))
    };
    send(&app(stage.layer(), lending), request(""))
        .await
        .is(400);
    drop(kept.lock().expect("a shelf").take());
    stage.has(0, 0).await;
}

pub(super) async fn a_second_guard_beside_the_first_is_refused<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let greedy = |once: Once<Db<F>>| async move {
        let mut first = once.begin().await?;
        let second = once.begin().await.expect_err("the first guard is alive");
        assert_eq!(second.rejection().code(), "lock_transaction_lent");
        effect::<F, _>(&mut first).await;
        Ok::<_, Refused>(())
    };
    send(&app(stage.layer(), greedy), request("")).await.is(200);
    stage.has(1, 1).await;
}

pub(super) async fn a_handle_that_outlives_its_request_gets_no_transaction<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let kept = Arc::new(Mutex::new(None));
    let shelf = Arc::clone(&kept);
    let lending = move |once: Once<Db<F>>, order: String| async move {
        *shelf.lock().expect("a shelf") = Some(once.clone());
        pay::<F>(once, order).await
    };
    send(&app(stage.layer(), lending), request(""))
        .await
        .is(201);
    let once = kept.lock().expect("a shelf").take().expect("a handle");
    let late = once.begin().await.expect_err("the request has ended");
    assert_eq!(late.rejection().code(), "lock_transaction_lent");
    stage.has(1, 1).await;
}

pub(super) async fn nested_layers_are_refused<F: Fixture + 'static>() {
    let log = ThisThread::listen();
    let stage = Stage::<F>::start().await;
    let plain = |name| {
        let layer = LockLayer::template(stage.locks.clone(), named(name));
        layer.expect("a template")
    };
    for replay in [Replay::in_database(stage.db.clone()), Replay::default()] {
        let route = Router::new().route("/payments", post(pay::<F>));
        let nested = route
            .route_layer(plain("inner:").replay(replay).expect("valid settings"))
            .route_layer(stage.layer())
            .layer(axum::Extension(User("alice")));
        let refused = send(&nested, request("")).await;
        refused.is_refused(500, "lock_invalid");
    }
    assert_eq!(log.lines("inside of one with `in_database`").len(), 2);
    stage.has(0, 0).await;

    // A plain lock layer on either side is fine.
    let route = Router::new().route("/payments", post(pay::<F>));
    let nested = route
        .route_layer(plain("inner:").cooldown(MINUTE))
        .route_layer(stage.layer())
        .route_layer(plain("outer:"))
        .layer(axum::Extension(User("alice")));
    let first = send(&nested, request("")).await;
    first.is(201);
    send(&nested, request("")).await.repeats(&first);
    stage.has(1, 1).await;
}

pub(super) async fn another_database_type_is_500<F: Fixture + 'static>() {
    let log = ThisThread::listen();
    let stage = Stage::<F>::start().await;
    let other = |once: Once<Staged<Db<F>>>| async move { once.begin().await.map(|_| ()) };
    let refused = send(&app(stage.layer(), other), request("")).await;
    assert_eq!(refused.status, 500);
    let lines = log.lines("another database than its layer has");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("Staged<"), "{lines:?}");

    // And a handler without such a layer.
    let plain = LockLayer::template(stage.locks.clone(), key()).expect("a template");
    let route = Router::new().route("/payments", post(pay::<F>));
    let route = route.route_layer(plain);
    let refused = send(&route.layer(axum::Extension(User("alice"))), request("")).await;
    assert_eq!(refused.status, 500);
    assert_eq!(log.lines("no layer with `Replay::in_database`").len(), 1);
    stage.has(0, 0).await;
}

pub(super) async fn a_missing_table_is_500<F: Fixture + 'static>() {
    let log = ThisThread::listen();
    let stage = Stage::<F>::start().await;
    stage.fixture.sql("DROP TABLE lockkit_once").await;
    let refused = send(&app(stage.layer(), pay::<F>), request("")).await;
    refused.is_refused(500, "lock_misconfigured").retries(None);
    let lines = log.lines("create_table");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("ERROR"), "{lines:?}");
    assert_eq!(stage.fixture.effects().await, 0);
}

pub(super) async fn an_unclosed_claim_of_a_function_is_500<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let forgetful = |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        let claim = Claim::new(OperationId::new("mail", ["42"]), MINUTE).expect("a valid life");
        tx.tx().claim(&claim).await.expect("an answer");
        Ok::<_, Refused>(Response::new(Body::from("paid")))
    };
    let refused = send(&app(stage.layer(), forgetful), request("")).await;
    refused.is_refused(500, "lock_invalid");
    stage.has(0, 0).await;
}

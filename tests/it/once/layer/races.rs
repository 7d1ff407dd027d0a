//! Two processes that run one operation, which the database alone keeps apart.

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode};
use lock_tower::{LockContext, Once, Remember};

use super::stage::{Db, Gate, Reply, Stage, app, pay, request, send};
use crate::once::suite::Fixture;

/// Runs a request in one process while another process does the operation, between the peek and the claim of the first.
///
/// Returns the answers of both.
async fn overtaken<F: Fixture + 'static>(
    stage: &Stage<F>,
    slow: Router,
    gate: &Gate,
    order: &'static str,
) -> (Reply, Reply) {
    let first = async { send(&slow, request(order)).await };
    let second = async {
        gate.arrived().await;
        let reply = send(&app(stage.other(), pay::<F>), request("tea")).await;
        gate.open();
        reply
    };
    tokio::join!(first, second)
}

pub(super) async fn a_handler_that_swallows_the_refusal_gets_the_replay<F: Fixture + 'static>() {
    for status in [StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR] {
        let stage = Stage::<F>::start().await;
        let gate = Gate::new();
        let inside = gate.clone();
        let swallowing = move |once: Once<Db<F>>, order: String| async move {
            inside.pass().await;
            let refused = once.begin().await.expect_err("it is done");
            assert_eq!(refused.rejection().code(), "lock_done");
            assert!(once.begin().await.is_err(), "it stays refused");
            (status, format!("{order} is paid, is it not?"))
        };
        let slow = app(stage.layer(), swallowing);
        let (first, second) = overtaken(&stage, slow, &gate, "tea").await;
        second.is(201);
        first.repeats(&second);
        stage.has(1, 1).await;
    }
}

pub(super) async fn a_handler_that_has_not_read_the_body_lets_its_client_retry<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let gate = Gate::new();
    let inside = gate.clone();
    let unread = move |once: Once<Db<F>>, _: Request<Body>| async move {
        inside.pass().await;
        once.begin().await.map(|_| ())
    };
    let slow = app(stage.layer(), unread);
    let (first, second) = overtaken(&stage, slow, &gate, "tea").await;
    first.is_refused(409, "lock_busy").retries(Some("1"));
    let app = app(stage.layer(), pay::<F>);
    send(&app, request("tea")).await.repeats(&second);
    stage.has(1, 1).await;
}

pub(super) async fn another_request_with_the_key_is_422_at_the_peek_and_at_the_claim<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let gate = Gate::new();
    let inside = gate.clone();
    let late = move |once: Once<Db<F>>, order: String| async move {
        inside.pass().await;
        pay::<F>(once, order).await
    };
    let slow = app(stage.layer(), late);
    let (first, second) = overtaken(&stage, slow, &gate, "cake").await;
    second.is(201);
    first.is_refused(422, "lock_key_reused").retries(None);
    let app = app(stage.layer(), pay::<F>);
    let third = send(&app, request("cake")).await;
    third.is_refused(422, "lock_key_reused");
    stage.has(1, 1).await;
}

pub(super) async fn an_error_that_another_run_has_made_obsolete_is_replaced<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let gate = Gate::new();
    let inside = gate.clone();
    // It has its say before it begins, but its answer is to be remembered.
    let declining = move |lock: LockContext, _: String| async move {
        inside.pass().await;
        lock.remember(Remember::Answer);
        (StatusCode::PAYMENT_REQUIRED, "declined")
    };
    let slow = app(stage.layer(), declining);
    let (first, second) = overtaken(&stage, slow, &gate, "tea").await;
    first.repeats(&second);
    stage.has(1, 1).await;
}

pub(super) async fn a_claim_without_begin_finds_the_record_of_another_run<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let gate = Gate::new();
    let inside = gate.clone();
    let without = move |_: String| async move {
        inside.pass().await;
        "no effect"
    };
    let slow = app(stage.layer(), without);
    let (first, second) = overtaken(&stage, slow, &gate, "tea").await;
    first.repeats(&second);
    stage.has(1, 1).await;
}

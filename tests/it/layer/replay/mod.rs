//! Tests layers with replay on a real Redis.

mod processes;
mod secrets;
mod trips;
mod uploads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::http::{self, Response};
use lock_tests::{RedisServer, wait};
use lock_tower::{LockContext, LockLayer, Replay, Replaying};
use tokio::time::timeout;

use super::{Gate, Server};

/// Makes a layer whose time limits a slow machine does not exceed.
fn replaying(locks: &LockManager, replay: Replay) -> LockLayer<Replaying> {
    let key = "pay:<header.x-user-id>:<idempotency-key>";
    let layer = LockLayer::template(locks.clone(), key).expect("a template");
    let layer = layer.replay(replay.caller_is_in_key()).expect("in bounds");
    layer
        .acquire_timeout(wait::PATIENCE)
        .release_timeout(wait::PATIENCE)
}

/// Counts the payments of several servers.
#[derive(Clone, Default)]
struct Payments(Arc<AtomicUsize>);

impl Payments {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Makes a service that reads its body, waits at the gate, pays, and answers with the number.
fn app(layer: LockLayer<Replaying>, gate: &Gate, payments: &Payments) -> Router {
    let (gate, payments) = (gate.clone(), payments.clone());
    let pay = move |lock: Option<LockContext>, _body: String| async move {
        gate.pass(lock).await;
        let number = payments.0.fetch_add(1, Ordering::SeqCst) + 1;
        let secret = [
            ("set-cookie", "sid=secret-cookie"),
            ("x-access-token", "secret-token"),
        ];
        (StatusCode::CREATED, secret, format!("payment {number}"))
    };
    Router::new()
        .route("/payments", post(pay))
        .route_layer(layer)
}

/// Starts a server with a manager of its own, as another process would have.
async fn server_on(redis: &RedisServer, gate: &Gate, payments: &Payments) -> Server {
    let locks = crate::steps::manager(&redis.url()).await;
    let layer = replaying(&locks, Replay::default());
    Server::serve(locks, app(layer, gate, payments)).await
}

/// Sends a payment of one user.
async fn pay(port: u16, key: &str, body: &str) -> Response {
    let headers = [("x-user-id", "secret-user"), ("idempotency-key", key)];
    let answer = timeout(
        wait::PATIENCE,
        http::post(port, "/payments", &headers, body),
    );
    let answer = answer.await.expect("the payment is answered");
    answer.unwrap_or_else(|error| panic!("no answer: {error}"))
}

#[track_caller]
fn assert_replay(answer: &Response, body: &str) {
    assert_eq!((answer.status, &*answer.body), (201, body), "{answer:?}");
    let replayed = answer.headers.get("idempotency-replayed");
    assert_eq!(replayed.map(String::as_str), Some("true"));
}

#[track_caller]
fn assert_first(answer: &Response, body: &str) {
    assert_eq!((answer.status, &*answer.body), (201, body), "{answer:?}");
    assert!(!answer.headers.contains_key("idempotency-replayed"));
}

/// Returns the name of the key of a payment in Redis.
fn name(key: &str) -> String {
    format!("lockkit:pay:secret-user:{key}")
}

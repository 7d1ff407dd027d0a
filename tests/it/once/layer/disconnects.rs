//! Handlers that end without an answer.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;

use axum::Router;
use lock_core::once::Tx;
use lock_tests::wait;
use lock_tower::{Disconnect, LockLayer, Once, Refused, Replaying};

use super::stage::{Db, Gate, Stage, app, effect, pay, request, send};
use crate::once::suite::Fixture;

/// Sends a request whose client leaves while the handler waits with its transaction open.
async fn left<F: Fixture + 'static>(layer: LockLayer<Replaying>, gate: &Gate) {
    let inside = gate.clone();
    let handler = move |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        inside.pass().await;
        Ok::<_, Refused>("paid")
    };
    let app: Router = app(layer, handler);
    let answer = pin!(send(&app, request("")));
    tokio::select! {
        _ = answer => panic!("the gate is closed"),
        () = gate.arrived() => {}
    }
}

pub(super) async fn a_disconnect_commits<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let gate = Gate::new();
    let layer = stage.layer();
    left::<F>(layer.clone(), &gate).await;
    gate.open();
    assert_eq!(layer.in_flight().drain(wait::PATIENCE).await, 0);
    stage.has(1, 1).await;
    let app = app(layer, runs_again);
    let repeated = send(&app, request("")).await;
    assert_eq!(repeated.headers["idempotency-replayed"], "true");
    assert_eq!(repeated.text, "paid");
}

pub(super) async fn a_disconnect_with_release_rolls_back<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let layer = stage.layer().on_disconnect(Disconnect::Release);
    left::<F>(layer.clone(), &Gate::new()).await;
    runs(&stage, layer).await;
}

pub(super) async fn a_panic_rolls_back<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    // A handle that outlives the request must not keep its transaction open.
    let (sender, mut handles) = tokio::sync::mpsc::unbounded_channel();
    let panics = move |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        sender.send(once.clone()).expect("the test listens");
        if sender.is_closed() {
            return Ok::<_, Refused>("never");
        }
        panic!("the handler of this test panics");
    };
    let app = app(stage.layer(), panics);
    let answer = AssertUnwindSafe(async { send(&app, request("")).await });
    assert!(caught(answer.0).await.is_err());
    let handle = handles.recv().await.expect("a handle");
    runs(&stage, stage.layer()).await;
    drop(handle);
}

async fn runs_again() -> &'static str {
    panic!("the operation is done")
}

/// Polls a future, and returns its panic as an error.
async fn caught<T>(future: impl Future<Output = T>) -> std::thread::Result<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match std::panic::catch_unwind(poll) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}

/// Asserts that nothing is left of the first run, and that the next one pays.
async fn runs<F: Fixture + 'static>(stage: &Stage<F>, layer: LockLayer<Replaying>) {
    stage.has(0, 0).await;
    // The server may not yet have noticed that the connection has ended.
    wait::eventually("the key is free", async || {
        let mut tx = Tx::begin(&stage.db).await.expect("a transaction");
        let claim = super::stage::claim_of(&stage.locks);
        let claimed = tx.claim(&claim).await.expect("an answer");
        tx.rollback().await.expect("an answer");
        claimed == lock_core::once::Claimed::Granted
    })
    .await;
    send(&app(layer, pay::<F>), request("")).await.is(201);
    stage.has(1, 1).await;
}

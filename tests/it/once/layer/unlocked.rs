//! Requests whose lock is lost, released, or was never there.

use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use lock_core::{ErrorKind, Renew};
use lock_tower::{LockContext, MissingKey, Once, Outage, Refused};

use super::stage::{Db, Stage, app, effect, pay, request, send};
use crate::once::suite::Fixture;

const SECOND: Duration = Duration::from_secs(1);

pub(super) async fn a_lost_lock_commits_all_the_same<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let clock = stage.clock.clone();
    let paused = move |once: Once<Db<F>>, lock: LockContext| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        clock.advance(2 * SECOND);
        assert!(lock.is_lost());
        drop(tx);
        // It continues the transaction.
        effect::<F, _>(&mut once.begin().await?).await;
        Ok::<_, Refused>(StatusCode::CREATED)
    };
    let app = app(stage.layer().ttl(SECOND).renew(Renew::Off), paused);
    let first = send(&app, request("")).await;
    first.is(201);
    send(&app, request("")).await.repeats(&first);
    stage.has(2, 1).await;
}

pub(super) async fn a_lock_that_is_lost_before_begin_is_503<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let clock = stage.clock.clone();
    let paused = move |once: Once<Db<F>>, order: String| async move {
        clock.advance(2 * SECOND);
        // A handler that swallows the refusal does no harm.
        let paid = pay::<F>(once, order).await;
        (StatusCode::CREATED, paid.is_ok().to_string())
    };
    let app = app(stage.layer().ttl(SECOND).renew(Renew::Off), paused);
    let refused = send(&app, request("")).await;
    refused
        .is_refused(503, "lock_unavailable")
        .retries(Some("1"));
    stage.has(0, 0).await;
    assert_eq!(stage.db.begun(), 0);
}

pub(super) async fn an_outage_of_redis_passes_once<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let store = stage.locks.test_store().expect("an embedded store");
    store.fail(ErrorKind::Unavailable);
    let refusing = app(stage.layer(), pay::<F>);
    send(&refusing, request(""))
        .await
        .is_refused(503, "lock_unavailable");

    let passing = |once: Once<Db<F>>, lock: LockContext, order: String| async move {
        assert!(!lock.is_locked() && lock.operation_id().is_some());
        pay::<F>(once, order).await
    };
    let passing = app(stage.layer().on_outage(Outage::Pass), passing);
    let first = send(&passing, request("")).await;
    first.is(201);
    send(&passing, request("")).await.repeats(&first);
    store.recover();
    send(&refusing, request("")).await.repeats(&first);
    stage.has(1, 1).await;
}

pub(super) async fn a_request_without_a_key_has_a_plain_transaction<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let layer = stage.layer().on_missing_key(MissingKey::Pass);
    let keyless = || {
        Request::post("/payments")
            .body(Body::empty())
            .expect("a request")
    };
    let paying = app(layer.clone(), pay::<F>);
    for effects in 1..=2 {
        send(&paying, keyless()).await.is(201);
        stage.has(effects, 0).await;
    }
    let failing = |once: Once<Db<F>>, order: String| async move {
        pay::<F>(once, order).await.map(|_| StatusCode::BAD_REQUEST)
    };
    send(&app(layer, failing), keyless()).await.is(400);
    stage.has(2, 0).await;
}

pub(super) async fn a_released_lock_leaves_the_claim<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let releasing = |once: Once<Db<F>>, lock: LockContext, order: String| async move {
        lock.release_now().await.expect("held");
        let paid = pay::<F>(once, order).await;
        assert!(!lock.is_lost());
        paid
    };
    let app = app(stage.layer(), releasing);
    let first = send(&app, request("")).await;
    first.is(201);
    send(&app, request("")).await.repeats(&first);
    stage.has(1, 1).await;
}

//! Requests that fail.

use axum::body::Body;
use http::{Request, Response, StatusCode};
use lock_tower::{LockContext, Once, Refused, Remember, Replay, RequestBody};
use tower::{Layer, ServiceExt, service_fn};

use super::stage::{Db, Gate, Stage, User, app, effect, pay, request, send};
use crate::once::suite::Fixture;

const DECLINED: StatusCode = StatusCode::PAYMENT_REQUIRED;

pub(super) async fn an_error_rolls_back<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    for status in [400, 302, 402, 500] {
        let failing = move |once: Once<Db<F>>| async move {
            let mut tx = once.begin().await?;
            effect::<F, _>(&mut tx).await;
            Ok::<_, Refused>((StatusCode::from_u16(status).expect("a status"), "no"))
        };
        let reply = send(&app(stage.layer(), failing), request("")).await;
        assert_eq!(reply.is(status).text, "no");
        stage.has(0, 0).await;
    }
    send(&app(stage.layer(), pay::<F>), request(""))
        .await
        .is(201);
}

/// A timeout inside of the layer drops the handler, and answers.
pub(super) async fn a_timeout_inside_rolls_back<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let gate = Gate::new();
    let slow = move |once: Once<Db<F>>| async move {
        let handler = async {
            let mut tx = once.begin().await?;
            effect::<F, _>(&mut tx).await;
            gate.pass().await;
            Ok::<_, Refused>(StatusCode::CREATED)
        };
        tokio::select! {
            answer = handler => answer,
            () = gate.arrived() => Ok(StatusCode::GATEWAY_TIMEOUT),
        }
    };
    send(&app(stage.layer(), slow), request("")).await.is(504);
    stage.has(0, 0).await;
    send(&app(stage.layer(), pay::<F>), request(""))
        .await
        .is(201);
}

pub(super) async fn a_remembered_error_is_recorded_alone<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let declining = |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        Ok::<_, Refused>((DECLINED, "declined"))
    };
    let replay = Replay::in_database(stage.db.clone()).remember_with(|head| match head.status {
        DECLINED => Remember::Answer,
        _ => Remember::Nothing,
    });
    let app = app(stage.layer_of(replay), declining);
    let first = send(&app, request("")).await;
    assert_eq!(first.is(402).text, "declined");
    stage.has(0, 1).await;
    send(&app, request("")).await.repeats(&first);
    stage.has(0, 1).await;
}

pub(super) async fn keep_commits_an_error<F: Fixture + 'static>() {
    for (remembered, records) in [
        (None, 0),
        (Some(Remember::Answer), 1),
        (Some(Remember::Done), 1),
    ] {
        let stage = Stage::<F>::start().await;
        let keeping = move |once: Once<Db<F>>, lock: LockContext| async move {
            let mut tx = once.begin().await?;
            effect::<F, _>(&mut tx).await;
            tx.keep();
            remembered.into_iter().for_each(|it| lock.remember(it));
            Ok::<_, Refused>((DECLINED, "declined"))
        };
        let app = app(stage.layer(), keeping);
        let first = send(&app, request("")).await;
        first.is(402);
        stage.has(1, records).await;
        let second = send(&app, request("")).await;
        match remembered {
            None => {
                second.is(402);
                stage.has(2, 0).await;
            }
            Some(Remember::Answer) => second.repeats(&first),
            Some(_) => second.is_refused(409, "lock_done").retries(None),
        }
    }
}

/// Sends a request to a service whose error is no response.
async fn failed<F: Fixture + 'static>(stage: &Stage<F>, remember: Option<Remember>) {
    let service = stage.layer().layer(service_fn(
        move |request: Request<RequestBody<Body>>| async move {
            let once = Once::<Db<F>>::of(request.extensions()).expect("behind the layer");
            let mut tx = once.begin().await.expect("a free key");
            effect::<F, _>(&mut tx).await;
            let lock: &LockContext = request.extensions().get().expect("behind the layer");
            remember.into_iter().for_each(|it| lock.remember(it));
            Err::<Response<Body>, _>("broken")
        },
    ));
    let mut request = request("");
    request.extensions_mut().insert(User("alice"));
    let failed = service.oneshot(request).await;
    assert_eq!(failed.err(), Some("broken"));
}

pub(super) async fn a_service_that_fails_rolls_back<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    failed(&stage, None).await;
    stage.has(0, 0).await;
    send(&app(stage.layer(), pay::<F>), request(""))
        .await
        .is(201);
}

pub(super) async fn a_failed_service_that_is_done_does_not_run_again<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    failed(&stage, Some(Remember::Done)).await;
    stage.has(0, 1).await;
    let second = send(&app(stage.layer(), pay::<F>), request("")).await;
    second.is_refused(409, "lock_done");
}

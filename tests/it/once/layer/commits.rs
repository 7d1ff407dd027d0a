//! Requests that succeed.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response, StatusCode};
use lock_core::OperationId;
use lock_core::once::{Claim, Claimed};
use lock_tower::{LockContext, Once, Refused, Remember, RequestBody};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt, service_fn};

use super::log::ThisThread;
use super::stage::{Db, MINUTE, Stage, User, app, effect, pay, request, send};
use super::staged::OnCommit;
use crate::once::suite::Fixture;

pub(super) async fn a_success_is_committed_and_repeated<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let app = [app(stage.layer(), pay::<F>), app(stage.other(), pay::<F>)];
    let first = send(&app[0], request("tea")).await;
    first.is(201);
    stage.has(1, 1).await;
    for process in &app {
        send(process, request("tea")).await.repeats(&first);
    }
    stage.has(1, 1).await;
}

pub(super) async fn the_layer_commits_before_the_first_byte<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let permits = Arc::new(Semaphore::new(0));
    stage.db.on_commit(OnCommit::Waits(Arc::clone(&permits)));
    let app = app(stage.layer(), pay::<F>);
    let mut answer = pin!(send(&app, request("tea")));
    // The handler has answered when the transaction is about to be committed.
    let mut context = Context::from_waker(Waker::noop());
    while stage.db.waiting() == 0 {
        assert!(answer.as_mut().poll(&mut context).is_pending());
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        assert!(answer.as_mut().poll(&mut context).is_pending());
        tokio::task::yield_now().await;
    }
    permits.add_permits(1);
    answer.await.is(201);
    stage.has(1, 1).await;
}

pub(super) async fn begin_twice_continues<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let twice = |once: Once<Db<F>>| async move {
        for _ in 0..2 {
            let mut tx = once.begin().await?;
            effect::<F, _>(&mut tx).await;
        }
        Ok::<_, Refused>(())
    };
    send(&app(stage.layer(), twice), request("")).await.is(200);
    assert_eq!(stage.db.begun(), 1);
    stage.has(2, 1).await;
}

pub(super) async fn a_begin_that_was_dropped_is_begun_again<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let twice = |once: Once<Db<F>>, order: String| async move {
        {
            let begin = pin!(once.begin());
            let begun = begin.poll(&mut Context::from_waker(Waker::noop()));
            assert!(begun.is_pending(), "no database answers at once");
        }
        pay::<F>(once, order).await
    };
    send(&app(stage.layer(), twice), request("")).await.is(201);
    stage.has(1, 1).await;
}

pub(super) async fn a_handler_without_begin_is_recorded<F: Fixture + 'static>() {
    let log = ThisThread::listen();
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), || async {
        (StatusCode::CREATED, "no effect")
    });
    let first = send(&app, request("")).await;
    first.is(201);
    send(&app, request("")).await.repeats(&first);
    stage.has(0, 1).await;

    let another = Request::post("/payments").header("idempotency-key", "another");
    let another = another.body(Body::empty()).expect("a request");
    send(&app, another).await.is(201);
    assert_eq!(log.lines("has not used its transaction").len(), 1);
}

/// As a function with `#[idempotent(tx = …)]` does.
pub(super) async fn a_function_claims_its_own_operation_in_the_handler<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let mail = || Claim::new(OperationId::new("mail", ["42"]), MINUTE).expect("a valid life");
    let mailing = move |once: Once<Db<F>>| async move {
        let mut tx = once.begin().await?;
        let claim = mail();
        if tx.tx().claim(&claim).await.expect("an answer") == Claimed::Granted {
            effect::<F, _>(&mut tx).await;
            tx.tx().complete(&claim, None).await.expect("its claim");
        }
        Ok::<_, Refused>(())
    };
    let app = app(stage.layer(), mailing);
    send(&app, request("")).await.is(200);
    stage.has(1, 2).await;
    let another = Request::post("/payments").header("idempotency-key", "another");
    let another = another.body(Body::empty()).expect("a request");
    send(&app, another).await.is(200);
    stage.has(1, 3).await;
}

pub(super) async fn done_is_committed_without_its_answer<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let secretly = |once: Once<Db<F>>, lock: LockContext, order: String| async move {
        lock.remember(Remember::Done);
        pay::<F>(once, order).await
    };
    let app = app(stage.layer(), secretly);
    send(&app, request("")).await.is(201);
    let second = send(&app, request("")).await;
    second.is_refused(409, "lock_done").retries(None);
    stage.has(1, 1).await;
}

pub(super) async fn nothing_remembered_is_committed_and_runs_again<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let forgetful = |once: Once<Db<F>>, lock: LockContext, order: String| async move {
        lock.remember(Remember::Nothing);
        pay::<F>(once, order).await
    };
    let app = app(stage.layer(), forgetful);
    for effects in 1..=2 {
        send(&app, request("")).await.is(201);
        stage.has(effects, 0).await;
    }
}

pub(super) async fn a_ticket_records_the_202<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let jobs = Arc::new(Mutex::new(None));
    let queue = Arc::clone(&jobs);
    let enqueue = move |once: Once<Db<F>>, lock: LockContext| async move {
        // The job is a row, and the ticket lets its worker go on with the lock.
        let ticket = lock.ticket(MINUTE).await.expect("a ticket");
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        *queue.lock().expect("a queue") = ticket;
        Ok::<_, Refused>(StatusCode::ACCEPTED)
    };
    let app = app(stage.layer(), enqueue);
    let first = send(&app, request("")).await;
    first.is(202);
    stage.has(1, 1).await;
    send(&app, request("")).await.is_refused(409, "lock_busy");

    let ticket = jobs.lock().expect("a queue").take().expect("a job");
    let worker = stage.locks.resume(ticket).await.expect("unused");
    worker.release().await.expect("held");
    send(&app, request("")).await.repeats(&first);
    stage.has(1, 1).await;
}

pub(super) async fn a_service_without_axum_has_its_transaction<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let layer = stage.layer();
    let service = layer.layer(service_fn(
        |request: Request<RequestBody<Body>>| async move {
            let once = Once::<Db<F>>::of(request.extensions()).expect("behind the layer");
            let mut tx = once.begin().await.expect("a free key");
            effect::<F, _>(&mut tx).await;
            Ok::<_, Infallible>(Response::new(Body::from("paid")))
        },
    ));
    for replayed in [false, true] {
        let mut request = request("");
        request.extensions_mut().insert(User("alice"));
        let response = service.clone().oneshot(request).await;
        let response = response.unwrap_or_else(|never| match never {});
        let marks = response.headers().contains_key("idempotency-replayed");
        assert_eq!((response.status().as_u16(), marks), (200, replayed));
    }
    stage.has(1, 1).await;
    assert!(layer.in_flight().drain(Duration::ZERO).await == 0);
}

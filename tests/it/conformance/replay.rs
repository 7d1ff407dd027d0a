//! Layers with replay: what one process has recorded is the answer of every other.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use lock_core::middleware::Forgotten;
use lock_core::{LockManager, Wait};
use lock_tests::wait;
use lock_tower::{LockLayer, Remember, Replay, Replayed, Replaying};
use tokio::sync::{Notify, Semaphore};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use super::{Fixture, long};

type Service = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The runs of a handler in all processes.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

fn layer(locks: &LockManager) -> LockLayer<Replaying> {
    // Over several servers a record lasts 10 minutes at most.
    let replay = Replay::default().lasting(Duration::from_secs(300));
    let layer = LockLayer::template(locks.clone(), "pay:<bearer>:<idempotency-key>");
    let layer = layer.expect("a template").replay(replay);
    let layer = layer.expect("in bounds");
    layer.acquire_timeout(long()).release_timeout(long())
}

/// Makes a service that answers with this status and the number of its run.
fn service(layer: LockLayer<Replaying>, runs: &Runs, status: u16) -> Service {
    let runs = runs.clone();
    let handler = service_fn(move |request: Request<_>| {
        let run = runs.0.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            let read = to_bytes(Body::new(request.into_body()), 1_000).await;
            read.expect("a body");
            let mut response = Response::new(Body::from(format!("payment {run}")));
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            Ok(response)
        }
    });
    let service = layer.layer(handler);
    BoxCloneSyncService::new(service.map_response(|response| response.map(Body::new)))
}

fn payment_of(body: &'static str) -> Request<Body> {
    let request = Request::post("/payments")
        .header("authorization", "Bearer alice")
        .header("idempotency-key", "k1")
        .body(Body::from(body));
    request.expect("a request")
}

/// Sends a payment, and returns status, body, and whether the answer is a replay.
async fn pay(service: &Service, body: &'static str) -> (u16, String, bool) {
    let response = service.clone().oneshot(payment_of(body)).await;
    let response = response.unwrap_or_else(|never| match never {});
    let (head, body) = response.into_parts();
    let body = to_bytes(body, 10_000).await.expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("text");
    let replayed = head.extensions.get::<Replayed>().is_some();
    (head.status.as_u16(), text, replayed)
}

fn payment(number: usize, replayed: bool) -> (u16, String, bool) {
    (201, format!("payment {number}"), replayed)
}

pub(super) async fn a_duplicate_gets_the_answer_of_another_process_until_it_is_forgotten(
    store: &Fixture,
) {
    let (one, two) = (store.manager().await, store.manager().await);
    let runs = Runs::default();
    let first = service(layer(&one), &runs, 201);
    let second = service(layer(&two), &runs, 201);
    assert_eq!(pay(&first, "{}").await, payment(1, false));
    for service in [&second, &first] {
        assert_eq!(pay(service, "{}").await, payment(1, true));
        let (status, problem, _) = pay(service, "{ }").await;
        assert_eq!(status, 422, "{problem}");
    }
    let key = layer(&two).key_of(payment_of("")).await.expect("a key");
    assert_eq!(
        two.forget(key.clone()).await.expect("no fault"),
        Forgotten::Yes
    );
    assert_eq!(pay(&first, "{}").await, payment(2, false));
    two.forget(key).await.expect("no fault");
    store.is_left_clean().await;
}

pub(super) async fn waiting_duplicates_of_two_processes_get_the_answer_of_one_run(store: &Fixture) {
    let (one, two) = (store.manager().await, store.manager().await);
    let runs = Runs::default();
    let services = [&one, &two].map(|locks| service(layer(locks).wait(Wait::Forever), &runs, 201));
    let payments: Vec<_> = (0..40)
        .map(|index| {
            let service = services[index % 2].clone();
            tokio::spawn(async move { pay(&service, "{}").await })
        })
        .collect();
    let mut replays = 0;
    for payment in payments {
        let (status, text, replayed) = payment.await.expect("no panic");
        assert_eq!((status, &*text), (201, "payment 1"));
        replays += usize::from(replayed);
    }
    assert_eq!((runs.0.load(Ordering::SeqCst), replays), (1, 39));
    assert_eq!(store.waiting(), 0);
}

/// The handlers of two processes, with one layer that waits and cools down.
pub(super) async fn duplicates_that_wait_are_refused_in_all_processes_when_a_cooldown_begins(
    store: &Fixture,
) {
    let (one, two) = (store.manager().await, store.manager().await);
    let entered = Arc::new(Notify::new());
    let go_on = Arc::new(Semaphore::new(0));
    let runs = Runs::default();
    let layer = |locks: &LockManager| {
        let layer = LockLayer::template(locks.clone(), "click:<bearer>").expect("a template");
        // A waiter could outlast the cooldown.
        let layer = layer.wait(Wait::Forever).cooldown(Duration::from_secs(10));
        layer.acquire_timeout(long()).release_timeout(long())
    };
    let service = |locks: &LockManager| {
        let (entered, go_on, runs) = (Arc::clone(&entered), Arc::clone(&go_on), runs.clone());
        let handler = service_fn(move |_: Request<Body>| {
            runs.0.fetch_add(1, Ordering::SeqCst);
            entered.notify_one();
            let go_on = Arc::clone(&go_on);
            async move {
                go_on.acquire().await.expect("open").forget();
                Ok(Response::new(Body::from("order")))
            }
        });
        let service = layer(locks).checked().expect("in bounds").layer(handler);
        BoxCloneSyncService::new(service.map_response(|response| response.map(Body::new)))
    };
    let services = [service(&one), service(&two)];
    let spawned = |index: usize| {
        let service: Service = services[index].clone();
        tokio::spawn(async move { pay(&service, "{}").await })
    };
    let first = spawned(0);
    entered.notified().await;
    let duplicates: Vec<_> = [0, 1, 0, 1].map(spawned).into();
    wait::eventually("the other process waits in the store", async || {
        store.waiting() > 0
    })
    .await;
    go_on.add_permits(9);
    assert_eq!(first.await.expect("no panic").0, 200);
    for duplicate in duplicates {
        let (status, problem, _) = duplicate.await.expect("no panic");
        assert_eq!(status, 409, "{problem}");
        assert!(problem.contains("lock_cooling_down"), "{problem}");
    }
    assert_eq!((runs.0.load(Ordering::SeqCst), store.waiting()), (1, 0));
    let key = layer(&one).key_of(payment_of("")).await.expect("a key");
    two.forget(key).await.expect("no fault");
    store.is_left_clean().await;
}

pub(super) async fn a_failure_is_not_repeated_and_a_secret_answer_is_done(store: &Fixture) {
    let (one, two) = (store.manager().await, store.manager().await);
    let runs = Runs::default();
    let failing = service(layer(&one), &runs, 503);
    assert_eq!(pay(&failing, "").await.0, 503);
    let succeeding = service(layer(&two), &runs, 201);
    assert_eq!(pay(&succeeding, "").await, payment(2, false));
    assert_eq!(pay(&failing, "").await, payment(2, true));

    let layer = LockLayer::template(one.clone(), "done:<bearer>:<idempotency-key>");
    let replay = Replay::default()
        .lasting(Duration::from_secs(300))
        .remember_with(|_| Remember::Done);
    let layer = layer.expect("a template").replay(replay);
    let layer = layer.expect("in bounds").acquire_timeout(long());
    let done = service(layer, &runs, 201);
    assert_eq!(pay(&done, "").await, payment(3, false));
    let (status, problem, _) = pay(&done, "").await;
    assert_eq!(status, 409);
    assert!(problem.contains("lock_done"), "{problem}");
}

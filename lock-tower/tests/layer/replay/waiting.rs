//! Duplicates that wait for the first answer.

use std::convert::Infallible;

use crate::common::{Gate, embedded, in_time, poll_once, until};
use crate::replay::steps::*;
use http::StatusCode;
use lock_core::Wait;
use lock_tower::{Remember, Replay};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::test]
async fn waiting_duplicates_get_the_answer_when_it_is_there() {
    let (locks, store) = embedded();
    let runs = Runs::default();
    let gate = Gate::closed();
    let (counted, at_gate) = (runs.clone(), gate.clone());
    let layer = paying(&locks, Replay::default()).wait(Wait::Forever);
    let service = layer.layer(service_fn(move |_: Received| {
        let run = counted.begin();
        let gate = at_gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, Infallible>(created(&format!("payment {run}")))
        }
    }));
    let sent: Vec<_> = (0..20)
        .map(|_| tokio::spawn(service.clone().oneshot(pay(""))))
        .collect();
    gate.entered(1).await;
    until(|| store.waiting() > 0 || locks.held().len() == 1).await;
    gate.let_through(1);
    let mut replays = 0;
    for request in sent {
        let reply = read(request.await.unwrap().unwrap()).await;
        assert_eq!(reply.text, "payment 1");
        replays += usize::from(reply.replayed);
    }
    assert_eq!((runs.count(), replays, store.waiting()), (1, 19, 0));
}

/// A client that obeyed a `Retry-After` of a day would pay again then.
#[tokio::test]
async fn a_duplicate_of_a_request_that_is_done_is_told_so_at_once_and_is_not_told_to_retry() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let replay = Replay::default().remember_with(|_| Remember::Done);
    let layer = paying(&locks, replay).wait(Wait::Forever);
    let service = layer.layer(service_fn(move |_: Received| {
        let gate = at_gate.clone();
        async move {
            gate.pass().await;
            let mut failed = created("the effect may have happened");
            *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            Ok::<_, Infallible>(failed)
        }
    }));
    let first = tokio::spawn(service.clone().oneshot(pay("")));
    gate.entered(1).await;
    let mut waiter = Box::pin(service.clone().oneshot(pay("")));
    assert!(poll_once(waiter.as_mut()).is_pending());
    gate.let_through(9);
    first.await.unwrap().unwrap();
    let waited = read(in_time(waiter).await.unwrap()).await;
    for refused in [waited, send(&service, pay("")).await] {
        assert_eq!(refused.status, StatusCode::CONFLICT);
        let problem: serde_json::Value = serde_json::from_str(&refused.text).unwrap();
        assert_eq!(problem["code"], "lock_done");
        assert_eq!(problem.get("retry_after_ms"), None);
        assert_eq!(refused.header("retry-after"), None);
        assert!(!refused.text.contains("succeeded"), "{}", refused.text);
    }
    assert_eq!((gate.entered_so_far(), store.waiting()), (1, 0));
}

#[tokio::test]
async fn a_waiting_duplicate_runs_if_the_first_request_has_failed() {
    let (locks, _) = embedded();
    let runs = Runs::default();
    let gate = Gate::closed();
    let (counted, at_gate) = (runs.clone(), gate.clone());
    let layer = paying(&locks, Replay::default()).wait(Wait::Forever);
    let service = layer.layer(service_fn(move |_: Received| {
        let run = counted.begin();
        let gate = at_gate.clone();
        async move {
            gate.pass().await;
            let mut response = created(&format!("payment {run}"));
            if run == 1 {
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            }
            Ok::<_, Infallible>(response)
        }
    }));
    let sent: Vec<_> = (0..3)
        .map(|_| tokio::spawn(service.clone().oneshot(pay(""))))
        .collect();
    gate.entered(1).await;
    gate.let_through(3);
    let mut texts = Vec::new();
    for request in sent {
        texts.push(read(request.await.unwrap().unwrap()).await.text);
    }
    texts.sort_unstable();
    assert_eq!(texts, ["payment 1", "payment 2", "payment 2"]);
    assert_eq!(runs.count(), 2);
}

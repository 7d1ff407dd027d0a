//! Waiting for the requests in flight at the end of a service.

use std::pin::pin;
use std::time::Duration;

use crate::common::*;
use lock_tower::ReleaseAt;
use tower::{Layer, ServiceExt};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_drain_waits_for_handlers_whose_clients_have_disconnected() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks);
    let orders = layer.in_flight();
    let service = layer.layer(gated(&gate));
    for user in ["42", "43"] {
        let request = tokio::spawn(service.clone().oneshot(click(user)));
        gate.entered(orders.count() + usize::from(user == "42"))
            .await;
        until(|| orders.count() == if user == "42" { 1 } else { 2 }).await;
        request.abort();
    }
    gate.entered(2).await;

    let mut drain = pin!(orders.drain(HOUR));
    assert!(poll_once(drain.as_mut()).is_pending());
    gate.let_through(1);
    until(|| orders.count() == 1).await;
    assert!(poll_once(drain.as_mut()).is_pending());
    gate.let_through(1);
    assert_eq!(drain.await, 0);
    assert_eq!((gate.ended_so_far(), store.taken()), (2, 0));
}

#[tokio::test]
async fn a_drain_that_runs_out_of_time_says_what_is_left() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks);
    let request = tokio::spawn(layer.layer(gated(&gate)).oneshot(click("42")));
    gate.entered(1).await;
    assert_eq!(layer.in_flight().drain(Duration::ZERO).await, 1);
    gate.let_through(1);
    assert!(request.await.unwrap().unwrap().status().is_success());
    assert_eq!(layer.in_flight().drain(HOUR).await, 0);
}

#[tokio::test]
async fn a_drain_waits_for_answers_that_are_still_being_sent() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    gate.let_through(1);
    let layer = per_user_and_route(&locks).release_at(ReleaseAt::BodyEnd);
    let service = layer.layer(gated(&gate));
    let response = service.oneshot(click("42")).await.unwrap();
    assert_eq!(layer.in_flight().drain(Duration::ZERO).await, 1);
    drop(response);
    assert_eq!(layer.in_flight().drain(HOUR).await, 0);
}

//! Requests that are dropped, because a client disconnected, a timeout ended or a server shut down.

use std::pin::pin;
use std::time::Duration;

use crate::common::*;
use lock_core::Wait;
use lock_tower::RejectionKind;
use tower::{Layer, Service, ServiceExt};

#[tokio::test]
async fn a_request_that_is_dropped_while_it_waits_runs_no_handler_and_leaves_no_key() {
    for polls in 0..6 {
        let (locks, store) = embedded();
        let gate = Gate::closed();
        let layer = per_user_and_route(&locks).wait(Wait::Forever);
        let service = layer.layer(gated(&gate));
        let held = locks
            .lock("submit:42:POST:/orders")
            .acquire()
            .await
            .unwrap();

        polled_and_dropped(service.clone().oneshot(click("42")), polls).await;
        held.release().await.unwrap();
        all_released(&locks).await;
        assert_eq!(gate.entered_so_far(), 0, "after {polls} polls");
        assert_eq!(
            (store.taken(), store.waiting()),
            (0, 0),
            "after {polls} polls"
        );
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_at_any_poll_runs_its_handler_to_the_end_or_not_at_all() {
    for polls in 0..10 {
        let (locks, store) = embedded();
        let gate = Gate::closed();
        gate.let_through(1);
        let service = per_user_and_route(&locks).layer(gated(&gate));
        polled_and_dropped(service.oneshot(click("42")), polls).await;
        all_released(&locks).await;
        assert_eq!(
            gate.entered_so_far(),
            gate.ended_so_far(),
            "after {polls} polls"
        );
        assert_eq!(store.taken(), 0, "after {polls} polls");
    }
}

#[tokio::test]
async fn a_handler_whose_request_is_dropped_runs_to_its_end_and_holds_the_lock_until_then() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks).cooldown(Duration::from_secs(3600));
    let service = layer.layer(gated(&gate));

    let request = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    let second = send(&service, click("42")).await;
    assert_eq!(second.kind(), Some(RejectionKind::InFlight));
    assert_eq!(gate.ended_so_far(), 0);

    gate.let_through(1);
    all_released(&locks).await;
    assert_eq!((gate.entered_so_far(), gate.ended_so_far()), (1, 1));
    assert_eq!(
        store.taken(),
        1,
        "its cooldown counts, though nobody read the answer"
    );
}

#[tokio::test]
async fn draining_waits_for_a_handler_whose_client_has_disconnected() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = per_user_and_route(&locks).layer(gated(&gate));
    let request = tokio::spawn(service.oneshot(click("42")));
    gate.entered(1).await;
    request.abort();

    let mut drain = pin!(locks.drain(Duration::from_secs(60)));
    assert!(poll_once(drain.as_mut()).is_pending());
    gate.let_through(1);
    assert!(drain.await.is_complete());
    assert_eq!(gate.ended_so_far(), 1);
}

#[test]
fn a_runtime_that_is_shut_down_under_a_handler_ends_it_and_the_lock_is_released() {
    let of_requests = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let service = per_user_and_route(&locks).layer(gated(&gate));
    of_requests.spawn(service.oneshot(click("42")));
    of_requests.block_on(gate.entered(1));
    drop(of_requests);

    let another = tokio::runtime::Runtime::new().unwrap();
    another.block_on(all_released(&locks));
    assert_eq!((gate.ended_so_far(), store.taken()), (0, 0));
}

#[test]
fn a_request_that_is_dropped_outside_of_its_runtime_runs_to_its_end_in_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let mut service = per_user_and_route(&locks).layer(gated(&gate));
    let mut response = Box::pin(service.call(click("42")));
    {
        let _inside = runtime.enter();
        assert!(poll_once(response.as_mut()).is_pending());
    }
    drop(response);

    gate.let_through(1);
    runtime.block_on(all_released(&locks));
    assert_eq!((gate.ended_so_far(), store.taken()), (1, 0));
}

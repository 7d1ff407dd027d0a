//! Lock layers around lock layers.

use crate::common::*;
use crate::log::ThisThread;
use http::{Request, StatusCode};
use lock_core::{LockManager, Wait};
use lock_tower::{Disconnect, LockLayer, Outage, RejectionKind};
use tower::{Layer, ServiceExt, service_fn};

fn keyed(locks: &LockManager, template: &str) -> LockLayer {
    LockLayer::template(locks.clone(), template).unwrap()
}

/// The layer neither treats the request as a duplicate nor waits for ever.
#[tokio::test]
async fn two_nested_layers_with_one_key_are_an_error_in_the_log() {
    let log = ThisThread::listen();
    let fallback = LockManager::in_memory();
    for wait in [Wait::None, Wait::Forever] {
        for outage in [Outage::Reject, Outage::Fallback(fallback.clone())] {
            let (locks, store) = embedded();
            let layer = per_user_and_route(&locks).wait(wait).on_outage(outage);
            let gate = Gate::closed();
            let twice = layer.clone().layer(layer.layer(gated(&gate)));
            let answer = send(&twice, click("42")).await;
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
            assert_eq!(answer.kind(), Some(RejectionKind::Invalid));
            assert_eq!((gate.entered_so_far(), store.taken()), (0, 0));
        }
    }
    assert_eq!(log.lines("two nested lock layers").len(), 4);
}

#[tokio::test]
async fn two_nested_layers_with_one_key_are_found_through_a_third_layer() {
    let (locks, store) = embedded();
    let same = per_user_and_route(&locks);
    let between = keyed(&locks, "route:<path>");
    let gate = Gate::closed();
    let service = same.clone().layer(between.layer(same.layer(gated(&gate))));
    let answer = send(&service, click("42")).await;
    assert_eq!(answer.kind(), Some(RejectionKind::Invalid));
    assert_eq!((gate.entered_so_far(), store.taken()), (0, 0));
}

#[tokio::test]
async fn in_shadow_mode_two_nested_layers_with_one_key_refuse_nothing() {
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks).shadow();
    let twice = layer.clone().layer(layer.layer(answers(StatusCode::OK)));
    assert_eq!(send(&twice, click("42")).await.status, StatusCode::OK);
}

/// Two stores can hold two locks with the same name.
#[tokio::test]
async fn the_same_key_of_another_store_is_another_lock() {
    let (locks, store) = embedded();
    let (others, other_store) = embedded();
    let gate = Gate::closed();
    let inner = per_user_and_route(&others).layer(gated(&gate));
    let service = per_user_and_route(&locks).layer(inner);
    let request = tokio::spawn(service.oneshot(click("42")));
    gate.entered(1).await;
    assert_eq!((store.taken(), other_store.taken()), (1, 1));
    gate.let_through(1);
    assert_eq!(request.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!((store.taken(), other_store.taken()), (0, 0));
}

#[tokio::test]
async fn two_nested_layers_with_two_keys_exclude_by_either_and_release_both() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let by_path = keyed(&locks, "path:<path>");
    let service = per_user_and_route(&locks).layer(by_path.layer(gated(&gate)));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    assert_eq!(store.taken(), 2);
    // The outer layer refuses, and the inner layer refuses and leaves nothing of the outer lock.
    for user in ["42", "43"] {
        let refused = send(&service, click(user)).await;
        assert_eq!(refused.kind(), Some(RejectionKind::InFlight), "{user}");
        assert_eq!(store.taken(), 2);
    }
    gate.let_through(1);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_handler_behind_three_layers_is_inside_all_their_locks() {
    let (locks, store) = embedded();
    let inside = locks.clone();
    let handler = service_fn(move |request: Request<Body>| {
        let locks = inside.clone();
        async move {
            let fence = context(&request).fencing_token();
            for key in ["a:42", "b:42", "c:42"] {
                let entered = locks.lock(key).run_with(async |lock| lock.fencing_token());
                let entered = entered.await.expect("it is inside");
                assert_eq!(
                    Some(entered) == fence,
                    key == "c:42",
                    "its context is the innermost"
                );
            }
            ok(StatusCode::OK)
        }
    });
    let [a, b, c] =
        ["a", "b", "c"].map(|name| keyed(&locks, &format!("{name}:<header.x-user-id>")));
    let service = a.layer(b.layer(c.layer(handler)));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_lock_that_the_outer_handler_has_released_is_acquired_again() {
    let (locks, store) = embedded();
    let inner = per_user_and_route(&locks).layer(answers(StatusCode::OK));
    let outer = per_user_and_route(&locks).layer(service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            context(&request).release_now().await.expect("it was held");
            let Ok(response) = inner.oneshot(request).await;
            assert_eq!(response.status(), StatusCode::OK);
            ok(StatusCode::OK)
        }
    }));
    assert_eq!(send(&outer, click("42")).await.status, StatusCode::OK);
    assert_eq!(store.taken(), 0);
}

/// The outer lock is released then, so the handler must not go on in a task of the inner layer.
#[tokio::test]
async fn a_handler_that_is_dropped_inside_of_an_outer_layer_does_not_run_on() {
    for shadow in [false, true] {
        for by_timeout in [true, false] {
            let (locks, store) = embedded();
            let [gate, timer] = [Gate::closed(), Gate::closed()];
            let inner = keyed(&locks, "cart:<header.x-user-id>");
            let inner = if shadow { inner.shadow() } else { inner };
            let taken = locks.lock("cart:42").try_acquire().await.unwrap();
            let taken = taken.filter(|_| shadow);
            let (handler, after) = (inner.clone().layer(gated(&gate)), timer.clone());
            let timed = service_fn(move |request| {
                let (handler, after) = (handler.clone(), after.clone());
                async move {
                    tokio::select! {
                        _ = handler.oneshot(request) => ok(StatusCode::OK),
                        () = after.pass() => ok(StatusCode::REQUEST_TIMEOUT),
                    }
                }
            });
            let disconnect = match by_timeout {
                true => Disconnect::RunToEnd,
                false => Disconnect::Release,
            };
            let outer = keyed(&locks, "user:<header.x-user-id>").on_disconnect(disconnect);
            let request = tokio::spawn(outer.layer(timed).oneshot(click("42")));
            gate.entered(1).await;
            if by_timeout {
                timer.let_through(1);
                let status = request.await.unwrap().unwrap().status();
                assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
            } else {
                request.abort();
                assert!(request.await.unwrap_err().is_cancelled());
            }
            gate.let_through(1);
            assert_eq!(inner.in_flight().drain(PATIENCE).await, 0);
            assert_eq!(gate.ended_so_far(), 0, "{shadow} {by_timeout}");
            drop(taken);
            all_released(&locks).await;
            assert_eq!(store.taken(), 0);
        }
    }
}

#[tokio::test]
async fn a_handler_whose_client_leaves_runs_to_its_end_inside_of_two_locks() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let outer = keyed(&locks, "user:<header.x-user-id>");
    let inner = keyed(&locks, "cart:<header.x-user-id>");
    let service = outer.clone().layer(inner.layer(gated(&gate)));
    let request = tokio::spawn(service.oneshot(click("42")));
    gate.entered(1).await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!(store.taken(), 2);
    gate.let_through(1);
    assert_eq!(outer.in_flight().drain(PATIENCE).await, 0);
    all_released(&locks).await;
    assert_eq!((gate.ended_so_far(), store.taken()), (1, 0));
}

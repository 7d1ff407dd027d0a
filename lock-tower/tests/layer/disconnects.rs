//! Handlers whose requests are dropped, by the policy of the layer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::common::*;
use http::{Request, StatusCode};
use lock_core::{ErrorKind, LockManager, Wait};
use lock_tower::{
    Disconnect, LockContext, LockLayer, MissingKey, Outage, RejectionKind, ReleaseAt,
};
use tokio::sync::mpsc;
use tower::{Layer, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

/// Records, when it is dropped, whether the lock was held then.
struct Witness(LockContext, mpsc::UnboundedSender<bool>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.is_valid());
    }
}

/// A handler that waits at the gate and records its drop.
fn watched(gate: &Gate) -> (impl Handler, mpsc::UnboundedReceiver<bool>) {
    let (sender, dropped) = mpsc::unbounded_channel();
    let gate = gate.clone();
    let handler = service_fn(move |request: Request<Body>| {
        let witness = Witness(context(&request), sender.clone());
        let gate = gate.clone();
        async move {
            gate.pass().await;
            drop(witness);
            ok(StatusCode::OK)
        }
    });
    (handler, dropped)
}

#[tokio::test]
async fn a_handler_that_is_dropped_with_its_client_releases_its_lock() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let (handler, mut dropped) = watched(&gate);
    let layer = per_user_and_route(&locks)
        .cooldown(HOUR)
        .on_disconnect(Disconnect::Release);
    let service = layer.layer(handler);

    let request = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    request.abort();
    let held = dropped.recv().await.expect("the handler is dropped");
    assert!(held, "before its lock is given back");
    assert_eq!(layer.in_flight().drain(HOUR).await, 0);
    gate.let_through(1);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    assert_eq!((gate.entered_so_far(), gate.ended_so_far()), (2, 1));
    all_released(&locks).await;
    assert_eq!(store.taken(), 1, "the second one's cooldown");
}

#[tokio::test]
async fn a_handler_that_is_dropped_with_its_client_may_hold_the_key_for_the_ttl() {
    let (locks, clock) = with_clock().await;
    let gate = Gate::closed();
    let (handler, mut dropped) = watched(&gate);
    let layer = per_user_and_route(&locks)
        .ttl(Duration::from_secs(10))
        .on_disconnect(Disconnect::HoldUntilTtl);
    let service = layer.layer(handler);

    let request = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    clock.advance(Duration::from_secs(5));
    request.abort();
    let held = dropped.recv().await.expect("the handler is dropped");
    assert!(held, "before its lock is given back");
    assert_eq!(layer.in_flight().drain(HOUR).await, 0);
    let refused = cooling_down(|| send(&service, click("42"))).await;
    assert_eq!(refused.retry_after, Some(10), "from the disconnect on");

    clock.advance(Duration::from_secs(10));
    gate.let_through(1);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

/// A request without a lock is one that its layer handles all the same.
#[tokio::test]
async fn a_handler_without_a_lock_runs_to_its_end_too_and_the_shutdown_waits_for_it() {
    let settings: [fn(LockLayer) -> LockLayer; 3] = [
        |layer| layer.on_outage(Outage::Pass),
        |layer| layer.on_missing_key(MissingKey::Pass),
        LockLayer::shadow,
    ];
    for (index, passes) in settings.into_iter().enumerate() {
        for disconnect in [Disconnect::RunToEnd, Disconnect::Release] {
            let (locks, store) = embedded();
            let gate = Gate::closed();
            let layer = passes(per_user_and_route(&locks)).on_disconnect(disconnect);
            let service = layer.clone().layer(gated(&gate));
            let user = ["42", "", "42"][index];
            let mut taken = None;
            match index {
                0 => store.fail(ErrorKind::Unavailable),
                1 => {}
                _ => {
                    taken = locks
                        .lock("submit:42:POST:/orders")
                        .try_acquire()
                        .await
                        .unwrap()
                }
            }
            let request = tokio::spawn(service.oneshot(click(user)));
            gate.entered(1).await;
            request.abort();
            let _ = request.await;
            gate.let_through(1);
            assert_eq!(layer.in_flight().drain(HOUR).await, 0);
            let to_its_end = usize::from(disconnect == Disconnect::RunToEnd);
            assert_eq!(gate.ended_so_far(), to_its_end, "{index} {disconnect:?}");
            drop(taken);
        }
    }
}

/// The lock is held until the release arrives.
async fn cooling_down<F: Future<Output = Answer>>(mut click: impl FnMut() -> F) -> Answer {
    loop {
        let refused = click().await;
        if refused.kind() == Some(RejectionKind::CoolingDown) {
            return refused;
        }
        assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_panic_is_no_disconnect_and_holds_nothing() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks).on_disconnect(Disconnect::HoldUntilTtl);
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        if true {
            panic!("as asked for");
        }
        ok(StatusCode::OK)
    }));
    let request = tokio::spawn(service.oneshot(click("42")));
    assert!(request.await.unwrap_err().is_panic());
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_handler_that_has_panicked_does_not_go_on_in_a_task() {
    let (locks, _) = embedded();
    let service = per_user_and_route(&locks).layer(service_fn(|_: Request<Body>| async {
        if true {
            panic!("as asked for");
        }
        ok(StatusCode::OK)
    }));
    let mut request = Box::pin(service.oneshot(click("42")));
    assert!(catch_unwind(AssertUnwindSafe(|| poll_once(request.as_mut()))).is_err());
    drop(request);
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(tasks, 0, "polled again, it would panic again");
    all_released(&locks).await;
}

#[tokio::test]
async fn a_client_that_leaves_after_the_handler_has_ended_holds_nothing() {
    let (locks, store) = embedded();
    let hangs = store.clone();
    let layer = per_user_and_route(&locks)
        .release_timeout(HOUR)
        .on_disconnect(Disconnect::HoldUntilTtl);
    let (told, mut ended) = mpsc::unbounded_channel();
    let service = layer.layer(service_fn(move |_| {
        hangs.hang();
        told.send(()).unwrap();
        async { ok(StatusCode::OK) }
    }));
    let request = tokio::spawn(service.oneshot(click("42")));
    ended.recv().await.unwrap();
    // The handler ends in its only poll. By the next turn of this runtime the release waits for the store.
    tokio::task::yield_now().await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!(layer.in_flight().drain(HOUR).await, 0);
    store.recover();
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

/// Drops the request at each poll under each policy. Everything is released and nothing stays counted.
#[tokio::test]
async fn a_request_that_is_dropped_at_any_poll_leaves_nothing_under_any_policy() {
    let policies = [
        Disconnect::RunToEnd,
        Disconnect::Release,
        Disconnect::HoldUntilTtl,
    ];
    for disconnect in policies {
        for release_at in [ReleaseAt::Head, ReleaseAt::BodyEnd] {
            for polls in 0..12 {
                let (locks, store) = embedded();
                let local = LockManager::in_memory();
                let of_process = local.test_store().unwrap();
                let gate = Gate::closed();
                gate.let_through(1);
                let layer = per_user_and_route(&locks)
                    .wait(Wait::Forever)
                    .release_at(release_at)
                    .on_disconnect(disconnect)
                    .on_outage(Outage::Fallback(local.clone()));
                let request = layer.layer(gated(&gate)).oneshot(click("42"));
                polled_and_dropped(request, polls).await;
                assert_eq!(layer.in_flight().drain(HOUR).await, 0);
                all_released(&locks).await;
                all_released(&local).await;

                let case = format!("{disconnect:?}, {release_at:?}, {polls} polls");
                let dropped = gate.entered_so_far() > gate.ended_so_far();
                let holds = dropped && disconnect == Disconnect::HoldUntilTtl;
                assert!(!dropped || disconnect != Disconnect::RunToEnd, "{case}");
                assert!(store.taken() <= usize::from(holds), "{case}");
                assert_eq!(store.taken(), of_process.taken(), "{case}");
                assert_eq!((store.waiting(), of_process.waiting()), (0, 0), "{case}");
            }
        }
    }
}

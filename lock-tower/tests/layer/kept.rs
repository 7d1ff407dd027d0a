//! Handlers that keep the lock of their request for work that outlives it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use http::{Request, StatusCode};
use lock_core::{ErrorKind, LockManager};
use lock_tower::{KeptContext, LockContext, Outage, RejectionKind};
use tower::{Layer, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

/// The work of the last request, as a thread would have it.
#[derive(Clone, Default)]
struct Work(Arc<Mutex<Option<KeptContext>>>);

impl Work {
    fn take(&self) -> KeptContext {
        self.0.lock().unwrap().take().expect("work")
    }

    /// Makes the handler that answers before its work has ended.
    fn handler(&self) -> impl Handler {
        let work = self.clone();
        service_fn(move |request: Request<Body>| {
            let (lock, work) = (context(&request), work.clone());
            async move {
                *work.0.lock().unwrap() = Some(lock.keep().expect("held"));
                ok(StatusCode::ACCEPTED)
            }
        })
    }
}

#[tokio::test]
async fn duplicates_are_refused_until_the_kept_work_has_ended_and_its_cooldown_begins_then() {
    let (locks, store) = embedded();
    let work = Work::default();
    let layer = per_user_and_route(&locks).cooldown(HOUR);
    let service = layer.layer(work.handler());
    let answer = send(&service, click("42")).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let kept = work.take();
    assert!(kept.is_valid() && !kept.is_lost() && kept.fencing_token().is_some());
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
    drop(kept);
    assert!(locks.drain(HOUR).await.is_complete());
    assert_eq!(store.taken(), 1, "the key cools down");
}

#[tokio::test]
async fn the_lock_of_the_fallback_and_those_of_outer_layers_are_kept_too() {
    let ((outer, outermost), (locks, store)) = (embedded(), embedded());
    let local = LockManager::in_memory();
    let fallback = local.test_store().expect("an embedded store");
    let work = Work::default();
    let inner = per_user_and_route(&locks).on_outage(Outage::Fallback(local.clone()));
    let service = per_user_and_route(&outer).layer(inner.layer(work.handler()));
    let taken = || (outermost.taken(), store.taken(), fallback.taken());
    send(&service, click("42")).await;
    let kept = work.take();
    assert_eq!(taken(), (1, 1, 1));
    drop(kept);
    for locks in [&outer, &locks, &local] {
        assert!(locks.drain(HOUR).await.is_complete());
    }
    assert_eq!(taken(), (0, 0, 0));
}

#[tokio::test]
async fn a_request_without_a_lock_keeps_nothing_and_one_that_was_released_cannot_be_kept() {
    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks).on_outage(Outage::Pass);
    let service = layer.layer(service_fn(|request: Request<Body>| {
        let lock: LockContext = context(&request);
        async move {
            lock.release_now().await.expect("held, or nothing to do");
            match lock.keep() {
                Ok(kept) => assert!(!kept.is_locked()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Lost),
            }
            ok(match lock.is_locked() {
                true => StatusCode::OK,
                false => StatusCode::ACCEPTED,
            })
        }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    store.fail(ErrorKind::Unavailable);
    let answer = send(&service, click("43")).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
}

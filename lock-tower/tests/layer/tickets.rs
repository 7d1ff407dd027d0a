//! Handlers that pass the lock of their request on to a worker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use http::{Request, StatusCode};
use lock_core::{ErrorKind, LockManager, Ticket};
use lock_tower::{LockContext, Outage, RejectionKind};
use tower::{Layer, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

/// The job that the last request has left for the worker.
#[derive(Clone, Default)]
struct Job(Arc<Mutex<Option<String>>>);

impl Job {
    fn ticket(&self) -> Ticket {
        let text = self.0.lock().unwrap().take().expect("a job");
        text.parse().expect("a ticket")
    }

    /// Makes the handler that answers 202.
    fn handler(&self) -> impl Handler {
        let job = self.clone();
        service_fn(move |request: Request<Body>| {
            let (lock, job) = (context(&request), job.clone());
            async move {
                let ticket = lock.ticket(HOUR).await.unwrap().expect("a lock");
                assert_eq!(Some(ticket.fencing_token()), lock.fencing_token());
                assert!(!lock.is_valid() && !lock.is_lost());
                *job.0.lock().unwrap() = Some(ticket.to_string());
                ok(StatusCode::ACCEPTED)
            }
        })
    }
}

#[tokio::test]
async fn duplicates_are_refused_until_the_worker_has_released_the_lock() {
    let (locks, store) = embedded();
    let job = Job::default();
    let layer = per_user_and_route(&locks).cooldown(HOUR);
    let service = layer.layer(job.handler());
    for _ in 0..2 {
        assert_eq!(
            send(&service, click("42")).await.status,
            StatusCode::ACCEPTED
        );
        assert_eq!(layer.in_flight().count(), 0);
        let refused = send(&service, click("42")).await;
        assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
        let guard = locks.resume(job.ticket()).await.expect("unused");
        let refused = send(&service, click("42")).await;
        assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
        guard.release().await.expect("held");
        assert_eq!(store.taken(), 0, "the layer's cooldown does not apply");
    }
}

#[tokio::test]
async fn a_ticket_of_a_fallback_lock_is_invalid_and_the_request_goes_on_under_its_lock() {
    let (locks, store) = embedded();
    let local = LockManager::in_memory();
    let fallback = local.test_store().expect("an embedded store");
    let layer = per_user_and_route(&locks).on_outage(Outage::Fallback(local));
    let service = layer.layer(service_fn(|request: Request<Body>| {
        let lock = context(&request);
        async move {
            match lock.ticket(HOUR).await {
                Ok(ticket) => assert!(ticket.is_some()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Invalid);
                    assert!(lock.is_valid());
                }
            }
            ok(match lock.is_valid() {
                true => StatusCode::OK,
                false => StatusCode::ACCEPTED,
            })
        }
    }));
    assert_eq!(
        send(&service, click("42")).await.status,
        StatusCode::ACCEPTED
    );
    assert_eq!(
        fallback.taken(),
        0,
        "this process does not hold the request back"
    );
    store.fail(ErrorKind::Unavailable);
    assert_eq!(send(&service, click("43")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_request_without_a_lock_has_no_ticket() {
    let (locks, store) = embedded();
    store.fail(ErrorKind::Unavailable);
    let layer = per_user_and_route(&locks).on_outage(Outage::Pass);
    let service = layer.layer(service_fn(|request: Request<Body>| {
        let lock: LockContext = context(&request);
        async move {
            let ticket = lock.ticket(HOUR).await.expect("nothing to do");
            ok(match ticket {
                Some(_) => StatusCode::ACCEPTED,
                None => StatusCode::OK,
            })
        }
    }));
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

//! Handlers that pass the lock of their request on, under a layer that repeats answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{context, embedded, ok};
use crate::replay::steps::*;
use http::StatusCode;
use lock_core::Ticket;
use lock_tower::{RejectionKind, Replay};
use tower::{Layer, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn the_answer_to_a_request_whose_work_goes_on_elsewhere_is_not_recorded() {
    let (locks, store) = embedded();
    let job = Arc::new(Mutex::new(None));
    let jobs = Arc::clone(&job);
    let service = paying(&locks, Replay::default()).layer(service_fn(move |request: Received| {
        let (lock, jobs) = (context(&request), Arc::clone(&jobs));
        async move {
            let ticket: Ticket = lock.ticket(HOUR).await.unwrap().expect("a lock");
            *jobs.lock().unwrap() = Some(ticket);
            ok(StatusCode::ACCEPTED)
        }
    }));
    for _ in 0..2 {
        let first = send(&service, pay("")).await;
        assert_eq!(
            (first.status, first.replayed),
            (StatusCode::ACCEPTED, false)
        );
        send(&service, pay(""))
            .await
            .is_refused(RejectionKind::InFlight);
        let ticket = job.lock().unwrap().take().expect("a job");
        let guard = locks.resume(ticket).await.expect("unused");
        guard.release().await.expect("held");
        assert_eq!(store.taken(), 0);
    }
}

//! Records that an operator deletes.

use std::time::Duration;

use crate::common::{Gate, embedded};
use crate::replay::steps::*;
use lock_core::middleware::Forgotten;
use lock_tower::{RejectionKind, Remember, Replay};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::test]
async fn after_a_record_is_forgotten_the_next_request_runs() {
    let (locks, _) = embedded();
    let runs = Runs::default();
    let layer = paying(&locks, Replay::default());
    let service = layer.clone().layer(numbered(&runs));
    let key = layer.key_of(pay("")).await.unwrap();
    assert_eq!(locks.forget(key.clone()).await.unwrap(), Forgotten::Nothing);
    send(&service, pay("")).await.is_first("payment 1");
    assert_eq!(locks.forget(key).await.unwrap(), Forgotten::Yes);
    send(&service, pay("")).await.is_first("payment 2");
}

#[tokio::test]
async fn a_request_that_is_done_can_be_forgotten_and_one_in_flight_cannot() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = paying(&locks, Replay::default().remember_with(|_| Remember::Done));
    let held = gate.clone();
    let service = layer.clone().layer(service_fn(move |_: Received| {
        let gate = held.clone();
        async move {
            gate.pass().await;
            Ok::<_, std::convert::Infallible>(created("paid"))
        }
    }));
    let key = layer.key_of(pay("")).await.unwrap();
    let first = tokio::spawn(service.clone().oneshot(pay("")));
    gate.entered(1).await;
    assert_eq!(locks.forget(key.clone()).await.unwrap(), Forgotten::Held);
    gate.let_through(2);
    first.await.unwrap().unwrap();
    let refused = send(&service, pay("")).await;
    refused.is_refused(RejectionKind::Done);
    assert_eq!(locks.forget(key).await.unwrap(), Forgotten::Yes);
    send(&service, pay("")).await.is_first("paid");
    locks.drain(Duration::from_secs(9)).await;
}

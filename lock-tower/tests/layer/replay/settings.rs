//! Settings of replay, and their bounds.

use std::time::Duration;

use crate::common::{all_released, embedded};
use crate::replay::steps::*;
use http::{Method, StatusCode};
use lock_core::{ErrorKind, LockManager};
use lock_tower::{
    LockLayer, LockService, Outage, ProbeError, RecordedBody, Recorder, Replay, Replaying, probe,
};
use tower::Layer;

#[tokio::test]
async fn settings_out_of_bounds_are_found_when_the_layer_is_made() {
    let builder = LockManager::builder("memory:").max_ttl(Duration::from_secs(60));
    let locks = builder.connect().await.unwrap();
    let with = |replay| {
        LockLayer::template(locks.clone(), per_user())
            .unwrap()
            .replay(replay)
    };
    let minute = || Replay::default().lasting(Duration::from_secs(60));
    assert!(with(minute()).is_ok());
    for wrong in [
        Replay::default(),
        minute().lasting(Duration::from_secs(61)),
        minute().lasting(Duration::ZERO),
        minute().largest_body(usize::MAX),
    ] {
        assert_eq!(with(wrong).unwrap_err().kind(), ErrorKind::Invalid);
    }
    let layer = with(minute()).unwrap();
    assert!(
        layer
            .clone()
            .body_timeout(Duration::ZERO)
            .checked()
            .is_err()
    );
    // The fallback keeps records, too.
    let builder = LockManager::builder("memory:").max_ttl(Duration::from_secs(40));
    let local = builder.connect().await.unwrap();
    let layer = layer.on_outage(Outage::Fallback(local));
    let service = layer.layer(numbered(&Runs::default()));
    let error = probe(service, pay("")).await.unwrap_err();
    assert!(matches!(error, ProbeError::Invalid { .. }), "{error}");
}

#[tokio::test]
async fn a_probe_reaches_a_layer_with_replay() {
    let (locks, _) = embedded();
    let runs = Runs::default();
    let service = paying(&locks, Replay::default()).layer(numbered(&runs));
    probe(service.clone(), pay("")).await.unwrap();
    let mut get = pay("");
    *get.method_mut() = http::Method::GET;
    assert_eq!(probe(service, get).await, Err(ProbeError::MethodNotLocked));
    assert_eq!(runs.count(), 0);
}

#[tokio::test]
async fn a_cooldown_counts_for_requests_that_are_not_remembered() {
    let (locks, store) = embedded();
    let layer = paying(&locks, Replay::default());
    let layer = layer.cooldown_with(|_| Duration::from_secs(7));
    let service = answering(&layer, |_| {
        let mut response = created("declined");
        *response.status_mut() = StatusCode::PAYMENT_REQUIRED;
        response
    });
    send(&service, pay("")).await.is_first("declined");
    let refused = send(&service, pay("")).await;
    assert_eq!(refused.header("retry-after"), Some("7"));
    all_released(&locks).await;
    assert_eq!(store.taken(), 1);
}

#[tokio::test]
async fn replay_changes_no_methods_whichever_setting_comes_first() {
    let (locks, _) = embedded();
    let with = |method: Method| {
        let mut request = pay("");
        *request.method_mut() = method;
        request
    };
    let only_put = || LockLayer::template(locks.clone(), per_user()).unwrap();
    let before = only_put().methods([Method::PUT]).replay(Replay::default());
    let after = paying(&locks, Replay::default()).methods([Method::PUT]);
    for layer in [before.unwrap(), after] {
        let service = layer.layer(numbered(&Runs::default()));
        assert_eq!(probe(service.clone(), with(Method::PUT)).await, Ok(()));
        let post = probe(service, with(Method::POST)).await;
        assert_eq!(post, Err(ProbeError::MethodNotLocked));
    }
    let runs = Runs::default();
    let service = paying(&locks, Replay::default()).layer(numbered(&runs));
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert_eq!(probe(service.clone(), with(method)).await, Ok(()));
    }
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        let found = probe(service.clone(), with(method)).await;
        assert_eq!(found, Err(ProbeError::MethodNotLocked));
    }
}

#[test]
fn public_types_of_replay_can_be_sent_shared_and_printed() {
    fn everywhere<T: Send + Sync + 'static>() {}
    everywhere::<LockLayer<Replaying>>();
    everywhere::<LockService<(), Replaying>>();
    everywhere::<RecordedBody<crate::common::Body>>();
    everywhere::<Recorder<()>>();
    everywhere::<Replay>();

    let (locks, _) = embedded();
    let layer = paying(&locks, Replay::default());
    let text = format!(
        "{:?} {:?} {:?}",
        Replay::default(),
        layer,
        Replay::default().fingerprint(lock_tower::Fingerprint::Head)
    );
    assert!(text.contains("86400s") && text.contains("65536"), "{text}");
}

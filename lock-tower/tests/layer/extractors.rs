//! Extractors of lock-tower, and those of users.

use crate::common::*;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use lock_core::LockManager;
use lock_tower::key::{self, HeadOnly, KeyError, KeyExtractor, KeyPart, KeyRequest, WithBody};
use lock_tower::{LockLayer, RejectionKind, RequestBody};
use tower::{Layer, ServiceExt, service_fn};

/// Looks up the user of a session, which takes a while.
struct Account;

impl KeyExtractor for Account {
    type Reads = HeadOnly;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        let session = request
            .headers()
            .get("x-session")
            .ok_or(KeyError::missing("session"))?;
        tokio::task::yield_now().await;
        match session.as_bytes() {
            b"of alice" => KeyPart::new("account", "alice"),
            b"of nobody" => KeyPart::new("account", ""),
            b"of two" => Err(KeyError::ambiguous("session")),
            b"nonsense" => Err(KeyError::invalid("session")),
            _ => Err(KeyError::unavailable()),
        }
    }
}

fn held(locks: &LockManager) -> Vec<String> {
    locks
        .held()
        .iter()
        .map(|held| held.key().to_owned())
        .collect()
}

fn with_session(session: Option<&str>) -> Request<Body> {
    let mut request = Request::post("/orders/%31");
    if let Some(session) = session {
        request = request.header("x-session", session);
    }
    request.body(Body::from("0123456789")).unwrap()
}

#[tokio::test]
async fn an_extractor_may_wait_and_can_be_combined_with_others() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = LockLayer::extractor(locks.clone(), (key::constant("pay"), Account, key::path()));
    let service = layer.layer(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(with_session(Some("of alice"))));
    gate.entered(1).await;
    assert_eq!(held(&locks), ["pay:alice:/orders/1"]);
    let again = send(&service, with_session(Some("of alice"))).await;
    assert_eq!(again.kind(), Some(RejectionKind::InFlight));
    gate.let_through(1);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn the_error_of_an_extractor_decides_the_refusal() {
    let (locks, store) = embedded();
    let service =
        LockLayer::extractor(locks, (key::constant("pay"), Account)).layer(answers(StatusCode::OK));
    for (session, status, code, part) in [
        (None, 400, "lock_key_missing", Some("session")),
        (Some("of nobody"), 400, "lock_key_missing", Some("account")),
        (Some("of two"), 400, "lock_key_ambiguous", Some("session")),
        (Some("nonsense"), 400, "lock_key_invalid", Some("session")),
        (Some("who knows"), 503, "lock_key_unavailable", None),
    ] {
        let refused = send(&service, with_session(session)).await;
        assert_eq!(refused.status, status, "{code}");
        assert_eq!(refused.problem()["code"], code);
        assert_eq!(
            refused
                .rejection
                .as_ref()
                .and_then(|rejection| rejection.source()),
            part
        );
        assert_eq!(refused.retry_after, (status == 503).then_some(1));
        assert!(!refused.text.contains("nonsense"), "{}", refused.text);
    }
    assert_eq!(store.taken(), 0);
}

/// Reads the user from the beginning of the body.
struct Magic;

impl KeyExtractor for Magic {
    type Reads = WithBody;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        let body = request.body().await?;
        let again = request.body().await?;
        assert_eq!(body, again);
        let magic = body.get(..4).ok_or(KeyError::body_invalid())?;
        KeyPart::new("magic", String::from_utf8_lossy(magic))
    }
}

#[tokio::test]
async fn an_extractor_may_read_the_body_before_the_handler_does() {
    let (locks, _) = embedded();
    let of_body = (
        key::constant("k"),
        key::method(),
        Magic,
        key::body().optional(),
    );
    let layer = LockLayer::body_extractor(locks.clone(), of_body, 10);
    let seen = locks.clone();
    let service = layer.layer(service_fn(move |request: Request<RequestBody<Body>>| {
        let locks = seen.clone();
        async move {
            let keys = held(&locks);
            assert!(
                keys[0].starts_with("k:POST:0123:") && keys[0].len() == 12 + 64,
                "{keys:?}"
            );
            let body = request.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "0123456789");
            ok(StatusCode::OK)
        }
    }));
    let answer = service.clone().oneshot(with_session(None)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let mut short = with_session(None);
    *short.body_mut() = Body::from("01");
    let refused = read(service.oneshot(short).await.unwrap()).await;
    assert_eq!(refused.kind(), Some(RejectionKind::BodyInvalid));
}

/// Reads the body although it declares that it does not.
struct Liar;

impl KeyExtractor for Liar {
    type Reads = HeadOnly;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        request.body().await?;
        KeyPart::new("body", "read")
    }
}

#[tokio::test]
async fn an_extractor_that_reads_the_body_in_a_layer_that_does_not_is_a_500() {
    let (locks, _) = embedded();
    let service = LockLayer::extractor(locks, Liar).layer(answers(StatusCode::OK));
    let refused = send(&service, with_session(None)).await;
    assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(refused.kind(), Some(RejectionKind::Invalid));
}

/// Cancels its wait for the body, and reads the body later.
struct Impatient;

impl KeyExtractor for Impatient {
    type Reads = WithBody;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        tokio::select! {
            biased;
            () = std::future::ready(()) => {}
            _ = request.body() => unreachable!("the other was ready first"),
        }
        let body = request.body().await?;
        KeyPart::new("length", body.len())
    }
}

#[tokio::test]
async fn a_cancelled_read_of_the_body_loses_nothing() {
    let (locks, _) = embedded();
    let layer = LockLayer::body_extractor(locks, Impatient, 10);
    let service = layer.layer(service_fn(
        |request: Request<RequestBody<Body>>| async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "0123456789");
            ok(StatusCode::OK)
        },
    ));
    let answer = service.oneshot(with_session(None)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[test]
fn an_invalid_name_panics_when_the_layer_is_made() {
    fn panics(make: impl FnOnce() + std::panic::UnwindSafe) {
        let panic = std::panic::catch_unwind(make).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(
            text.contains("is not a valid name of a") || text.contains("trusted proxies"),
            "{text}"
        );
    }
    panics(|| drop(key::header("a b")));
    panics(|| drop(key::cookie("")));
    panics(|| drop(key::query("")));
    panics(|| drop(key::form("a b")));
    panics(|| drop(key::forwarded(0)));
    panics(|| drop(key::x_forwarded_for(33)));
}

//! Another request under the same key is refused, as far as the first handler had read its own.

use std::convert::Infallible;
use std::time::Duration;

use crate::common::{Fed, data, embedded, poll_once};
use crate::replay::steps::*;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use lock_core::LockManager;
use lock_tower::{Fingerprint, RejectionKind, Replay, RequestBody};
use tokio::sync::mpsc;
use tower::{Layer, Service, ServiceExt, service_fn};

/// A body in these pieces.
fn pieces(pieces: &[&'static str]) -> Request<Fed> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for piece in pieces {
        sender.send(data(piece)).unwrap();
    }
    streamed(receiver)
}

fn streamed(body: mpsc::UnboundedReceiver<crate::common::Sent>) -> Request<Fed> {
    pay("").map(|_| Fed(body))
}

/// A handler that reads this many frames of the body and answers.
fn reading(
    locks: &LockManager,
    replay: Replay,
    frames: usize,
) -> impl Service<
    Request<Fed>,
    Response = Response<impl http_body::Body<Data = Bytes, Error = Infallible>>,
    Error = Infallible,
> + Clone {
    paying(locks, replay).layer(service_fn(
        move |request: Request<RequestBody<Fed>>| async move {
            let mut body = request.into_body();
            for _ in 0..frames {
                body.frame().await;
            }
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("paid")))
        },
    ))
}

const ALL: usize = 10;

#[tokio::test]
async fn a_body_with_one_byte_more_or_less_or_changed_is_another_request() {
    let (locks, _) = embedded();
    let service = reading(&locks, Replay::default(), ALL);
    send(&service, pieces(&["cents", "=50"]))
        .await
        .is_first("paid");
    for same in [
        &["cents=50"][..],
        &["c", "ents=5", "0"],
        &["cents", "=50", ""],
    ] {
        send(&service, pieces(same)).await.is_replay("paid");
    }
    for other in [
        &["cents=500"][..],
        &["cents=50", "0"],
        &["cents=5"],
        &["cents=51"],
        &["Cents=50"],
        &[],
    ] {
        let refused = send(&service, pieces(other)).await;
        refused.is_refused(RejectionKind::KeyReused);
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains("lock_key_reused"), "{refused:?}");
    }
    // Nothing was changed by them.
    send(&service, pieces(&["cents=50"]))
        .await
        .is_replay("paid");
}

#[tokio::test]
async fn bytes_that_the_first_handler_did_not_read_do_not_matter() {
    let (locks, _) = embedded();
    let service = reading(&locks, Replay::default(), 1);
    send(&service, pieces(&["abc", "def"]))
        .await
        .is_first("paid");
    for same in [&["abc"][..], &["abc", "xyz"], &["ab", "cxyz"]] {
        send(&service, pieces(same)).await.is_replay("paid");
    }
    for other in [&["ab"][..], &["abx", "def"]] {
        send(&service, pieces(other))
            .await
            .is_refused(RejectionKind::KeyReused);
    }

    let (locks, _) = embedded();
    let service = reading(&locks, Replay::default(), 0);
    send(&service, pieces(&["abc"])).await.is_first("paid");
    for same in [&["xyz"][..], &[]] {
        send(&service, pieces(same)).await.is_replay("paid");
    }
}

#[tokio::test]
async fn an_empty_body_that_was_read_differs_from_every_other() {
    let (locks, _) = embedded();
    let service = reading(&locks, Replay::default(), ALL);
    send(&service, pieces(&[])).await.is_first("paid");
    send(&service, pieces(&[""])).await.is_replay("paid");
    send(&service, pieces(&["a"]))
        .await
        .is_refused(RejectionKind::KeyReused);
}

#[tokio::test]
async fn method_path_and_query_matter_and_the_spelling_of_the_path_does_not() {
    let (locks, _) = embedded();
    let layer = paying(&locks, Replay::default());
    let service = layer.layer(numbered(&Runs::default()));
    let at = |method: &str, uri: &str| {
        let mut request = pay("{}");
        *request.method_mut() = method.parse().unwrap();
        *request.uri_mut() = uri.parse().unwrap();
        request
    };
    send(&service, at("POST", "/users/1?a=1"))
        .await
        .is_first("payment 1");
    send(&service, at("POST", "/users/%31?a=1"))
        .await
        .is_replay("payment 1");
    for (method, uri) in [
        ("PATCH", "/users/1?a=1"),
        ("POST", "/users/2?a=1"),
        ("POST", "/users/1?a=2"),
        ("POST", "/users/1"),
    ] {
        let refused = send(&service, at(method, uri)).await;
        refused.is_refused(RejectionKind::KeyReused);
    }
}

#[tokio::test]
async fn headers_do_not_matter_and_bodies_need_not() {
    let (locks, _) = embedded();
    let replay = Replay::default().fingerprint(Fingerprint::Head);
    let service = paying(&locks, replay).layer(numbered(&Runs::default()));
    send(&service, pay("--boundary-1"))
        .await
        .is_first("payment 1");
    let mut again = pay("--boundary-2");
    again
        .headers_mut()
        .insert("traceparent", "00-2".parse().unwrap());
    send(&service, again).await.is_replay("payment 1");
    let mut other = pay("--boundary-1");
    *other.uri_mut() = "/refunds".parse().unwrap();
    send(&service, other)
        .await
        .is_refused(RejectionKind::KeyReused);
}

#[tokio::test]
async fn a_duplicate_whose_body_is_slow_or_breaks_off_is_refused_and_may_be_sent_again() {
    let (locks, _) = embedded();
    let first = reading(&locks, Replay::default(), ALL);
    send(&first, pieces(&["abc"])).await.is_first("paid");

    let layer = paying(&locks, Replay::default()).body_timeout(Duration::from_millis(5));
    let service = layer.layer(service_fn(|_: Request<RequestBody<Fed>>| async {
        Ok::<_, Infallible>(created("another run"))
    }));
    let (feed, body) = mpsc::unbounded_channel();
    feed.send(data("ab")).unwrap();
    let slow = send(&service, streamed(body));
    let slow = tokio::time::timeout(Duration::from_secs(20), slow).await;
    let slow = slow.expect("it does not wait for the body");
    slow.is_refused(RejectionKind::BodyTimeout);
    assert_eq!(slow.status, StatusCode::REQUEST_TIMEOUT);

    let (broken, body) = mpsc::unbounded_channel();
    broken.send(data("ab")).unwrap();
    broken.send(Err("reset")).unwrap();
    send(&service, streamed(body))
        .await
        .is_refused(RejectionKind::BodyIncomplete);
    send(&service, pieces(&["abc"])).await.is_replay("paid");
}

#[tokio::test]
async fn a_duplicate_is_answered_when_the_bytes_that_count_are_there() {
    let (locks, _) = embedded();
    let service = reading(&locks, Replay::default(), 1);
    send(&service, pieces(&["abc"])).await.is_first("paid");
    let (feed, body) = mpsc::unbounded_channel();
    let mut duplicate = Box::pin(service.clone().oneshot(streamed(body)));
    feed.send(data("ab")).unwrap();
    assert!(poll_once(duplicate.as_mut()).is_pending());
    feed.send(data("cd")).unwrap();
    read(duplicate.await.unwrap()).await.is_replay("paid");
}

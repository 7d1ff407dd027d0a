//! Another request under the same key is refused, as far as the first handler had read its own.

use std::convert::Infallible;
use std::time::Duration;

use crate::common::{Fed, data, embedded, in_time, poll_once};
use crate::replay::steps::*;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use lock_core::LockManager;
use lock_tower::{Fingerprint, RejectionKind, Remember, Replay, RequestBody};
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

#[tokio::test]
async fn the_body_of_a_first_request_reaches_its_handler_as_it_arrives() {
    let (locks, _) = embedded();
    let (seen, mut pieces) = mpsc::unbounded_channel();
    let layer = paying(&locks, Replay::default());
    let service = layer.layer(service_fn(move |request: Request<RequestBody<Fed>>| {
        let seen = seen.clone();
        async move {
            let mut body = request.into_body();
            while let Some(frame) = body.frame().await {
                seen.send(frame.unwrap().into_data().unwrap()).unwrap();
            }
            Ok::<_, Infallible>(created("paid"))
        }
    }));
    let (feed, body) = mpsc::unbounded_channel();
    let first = tokio::spawn(async move { send(&service, streamed(body)).await });
    for piece in ["cents", "=50"] {
        feed.send(data(piece)).unwrap();
        assert_eq!(in_time(pieces.recv()).await.unwrap(), piece);
    }
    drop(feed);
    first.await.unwrap().is_first("paid");
}

/// An optional body is not read where there is none.
#[tokio::test]
async fn a_request_without_a_body_differs_from_one_with_a_body() {
    let (locks, _) = embedded();
    let service = answering(&paying(&locks, Replay::default()), |_| created("paid"));
    send(&service, pay("")).await.is_first("paid");
    send(&service, pay("")).await.is_replay("paid");
    send(&service, pay("cents=50"))
        .await
        .is_refused(RejectionKind::KeyReused);
}

/// A repeated upload may take as long as the first one did.
#[tokio::test]
async fn a_duplicate_whose_body_arrives_slowly_gets_the_answer() {
    let (locks, _) = embedded();
    let first = reading(&locks, Replay::default(), ALL);
    send(&first, pieces(&["a", "b", "c"]))
        .await
        .is_first("paid");
    let layer = paying(&locks, Replay::default()).body_timeout(Duration::from_secs(4));
    let service = layer.layer(service_fn(|_: Request<RequestBody<Fed>>| async {
        Ok::<_, Infallible>(created("another run"))
    }));
    let (feed, body) = mpsc::unbounded_channel();
    let pauses = async move {
        for piece in ["a", "b", "c"] {
            feed.send(data(piece)).unwrap();
            tokio::time::sleep(Duration::from_millis(2_100)).await;
        }
    };
    let (reply, ()) = tokio::join!(send(&service, streamed(body)), pauses);
    reply.is_replay("paid");
}

/// A body that sends the same frame for ever.
struct Endless(Bytes);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let frame = http_body::Frame::data(self.0.clone());
        std::task::Poll::Ready(Some(Ok(frame)))
    }
}

fn with_endless_bodies(
    layer: &lock_tower::LockLayer<lock_tower::Replaying>,
) -> impl Service<
    Request<Endless>,
    Response = Response<impl http_body::Body<Data = Bytes, Error = Infallible>>,
    Error = Infallible,
> + Clone {
    layer.layer(service_fn(|_: Request<RequestBody<Endless>>| async {
        Ok::<_, Infallible>(created("another run"))
    }))
}

#[tokio::test]
async fn a_duplicate_with_empty_frames_without_an_end_is_too_slow() {
    let (locks, _) = embedded();
    let first = reading(&locks, Replay::default(), ALL);
    send(&first, pieces(&["abc"])).await.is_first("paid");
    let layer = paying(&locks, Replay::default()).body_timeout(Duration::from_millis(5));
    let endless = pay("").map(|_| Endless(Bytes::new()));
    in_time(send(&with_endless_bodies(&layer), endless))
        .await
        .is_refused(RejectionKind::BodyTimeout);
}

/// Sends a body that ends later. Returns its answer, which comes behind that end.
async fn answered_behind_its_body<S, B>(service: &S, piece: &'static str) -> Reply
where
    S: Service<Request<Fed>, Response = Response<B>, Error = Infallible> + Clone,
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (feed, body) = mpsc::unbounded_channel();
    let mut answer = Box::pin(send(service, streamed(body)));
    feed.send(data(piece)).unwrap();
    assert!(poll_once(answer.as_mut()).is_pending());
    drop(feed);
    answer.await
}

/// Over HTTP/1.1 a client that still sends cannot read an answer, because the server closes the connection.
#[tokio::test]
async fn a_duplicate_whose_body_does_not_count_is_answered_behind_its_body_within_bounds() {
    let head = || Replay::default().fingerprint(Fingerprint::Head);
    let (locks, _) = embedded();
    let service = reading(&locks, head(), ALL);
    send(&service, pieces(&["--1"])).await.is_first("paid");

    answered_behind_its_body(&service, "--2")
        .await
        .is_replay("paid");

    // Another request is refused behind its body, too.
    let (locks, _) = embedded();
    let strict = reading(&locks, Replay::default(), ALL);
    send(&strict, pieces(&["a"])).await.is_first("paid");
    answered_behind_its_body(&strict, "ab")
        .await
        .is_refused(RejectionKind::KeyReused);

    // So is a duplicate of a request that is done.
    let (locks, _) = embedded();
    let done = Replay::default().remember_with(|_| Remember::Done);
    let service = reading(&locks, done, ALL);
    send(&service, pieces(&["a"])).await.is_first("paid");
    answered_behind_its_body(&service, "a")
        .await
        .is_refused(RejectionKind::Done);

    // A body that breaks off changes nothing.
    let (locks, _) = embedded();
    let service = reading(&locks, head(), ALL);
    send(&service, pieces(&["--1"])).await.is_first("paid");
    let (feed, body) = mpsc::unbounded_channel();
    feed.send(Err("reset")).unwrap();
    send(&service, streamed(body)).await.is_replay("paid");

    let layer = paying(&locks, head()).body_timeout(Duration::from_millis(5));
    let service = layer.layer(service_fn(|_: Request<RequestBody<Fed>>| async {
        Ok::<_, Infallible>(created("another run"))
    }));
    let (_idle, body) = mpsc::unbounded_channel();
    let idle = in_time(send(&service, streamed(body))).await;
    idle.is_replay("paid");

    let layer = paying(&locks, head());
    let endless = pay("").map(|_| Endless(Bytes::from(vec![b'x'; 1 << 20])));
    let endless = in_time(send(&with_endless_bodies(&layer), endless)).await;
    endless.is_replay("paid");
}

#[tokio::test]
async fn where_get_is_locked_a_head_gets_the_head_of_the_answer_and_a_get_never_that_of_a_head() {
    let (locks, _) = embedded();
    let layer = paying(&locks, Replay::default()).methods([http::Method::GET]);
    let runs = Runs::default();
    let service = layer.layer(numbered(&runs));
    let with = |method| {
        let mut request = pay("");
        *request.method_mut() = method;
        request
    };
    for run in ["payment 1", "payment 2"] {
        send(&service, with(http::Method::HEAD)).await.is_first(run);
    }
    send(&service, with(http::Method::GET))
        .await
        .is_first("payment 3");
    let head = send(&service, with(http::Method::HEAD)).await;
    head.is_replay("");
    assert_eq!(head.header("content-length"), Some("9"));
    send(&service, with(http::Method::GET))
        .await
        .is_replay("payment 3");
}

//! Answers whose bodies are long, stream, fail or lie about their length.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::common::{Fed, all_released, data, embedded, in_time};
use crate::replay::steps::*;
use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use lock_core::LockManager;
use lock_tower::{RejectionKind, ReleaseAt, Replay};
use tokio::sync::mpsc;
use tower::{Layer, ServiceExt, service_fn};

/// A body that announces a length.
struct Announced(Fed, u64);

impl http_body::Body for Announced {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<crate::common::Sent>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.1)
    }
}

fn fed(frames: Vec<crate::common::Sent>) -> Fed {
    let (sender, receiver) = mpsc::unbounded_channel();
    for frame in frames {
        sender.send(frame).unwrap();
    }
    Fed(receiver)
}

/// Sends a request whose handler answers with this body.
async fn first_of<B>(
    locks: &LockManager,
    replay: Replay,
    end: ReleaseAt,
    body: B,
) -> Result<Bytes, B::Error>
where
    B: http_body::Body<Data = Bytes, Error: Send> + Send + Sync + 'static,
{
    let body = std::sync::Arc::new(std::sync::Mutex::new(Some(body)));
    let service = answering(&paying(locks, replay).release_at(end), move |_| {
        Response::new(body.lock().unwrap().take().expect("one run"))
    });
    let response = service.oneshot(pay("")).await.unwrap();
    Ok(response.into_body().collect().await?.to_bytes())
}

/// Sends a duplicate, whose handler would answer with `another run`.
async fn second(locks: &LockManager) -> Reply {
    let service = answering(&paying(locks, Replay::default()), |_| {
        created("another run")
    });
    send(&service, pay("")).await
}

const HEAD: ReleaseAt = ReleaseAt::Head;
const END: ReleaseAt = ReleaseAt::BodyEnd;

#[tokio::test]
async fn a_body_within_the_limit_is_kept_and_one_byte_more_is_done() {
    for end in [HEAD, END] {
        let small = || Replay::default().largest_body(4);
        let (locks, _) = embedded();
        assert_eq!(
            first_of(&locks, small(), end, Full::from("1234"))
                .await
                .unwrap(),
            "1234"
        );
        until_free_or_done(&locks).await.is_replay("1234");

        let (locks, _) = embedded();
        assert_eq!(
            first_of(&locks, small(), end, Full::from("12345"))
                .await
                .unwrap(),
            "12345"
        );
        until_free_or_done(&locks)
            .await
            .is_refused(RejectionKind::Done);
    }
    let (locks, _) = embedded();
    let streamed = fed(vec![data("123"), data("45")]);
    let small = Replay::default().largest_body(4);
    assert_eq!(
        first_of(&locks, small, END, streamed).await.unwrap(),
        "12345"
    );
    until_free_or_done(&locks)
        .await
        .is_refused(RejectionKind::Done);
}

/// A proxied body can stop although its length is known.
#[tokio::test]
async fn an_answer_that_stalls_is_sent_without_its_end_and_its_request_is_done() {
    for end in [HEAD, END] {
        let (locks, _) = embedded();
        let (feed, body) = mpsc::unbounded_channel();
        feed.send(data("12")).unwrap();
        let body = std::sync::Mutex::new(Some(Announced(Fed(body), 4)));
        let body = std::sync::Arc::new(body);
        let layer = paying(&locks, Replay::default()).release_at(end);
        let layer = layer.body_timeout(std::time::Duration::from_millis(5));
        let service = answering(&layer, move |_| {
            Response::new(body.lock().unwrap().take().unwrap())
        });
        let response = in_time(service.oneshot(pay(""))).await.unwrap();
        if end == HEAD {
            second(&locks).await.is_refused(RejectionKind::Done);
        }
        feed.send(data("34")).unwrap();
        drop(feed);
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "1234");
        until_free_or_done(&locks)
            .await
            .is_refused(RejectionKind::Done);
    }
}

#[tokio::test]
async fn an_empty_answer_is_kept() {
    let (locks, _) = embedded();
    first_of(&locks, Replay::default(), HEAD, Full::default())
        .await
        .unwrap();
    second(&locks).await.is_replay("");
}

#[tokio::test]
async fn a_body_of_unknown_length_streams_at_once_and_its_request_is_done() {
    let (locks, store) = embedded();
    let (feed, body) = mpsc::unbounded_channel();
    let body = std::sync::Mutex::new(Some(Fed(body)));
    let body = std::sync::Arc::new(body);
    let service = answering(&paying(&locks, Replay::default()), move |_| {
        Response::new(body.lock().unwrap().take().unwrap())
    });
    let response = service.oneshot(pay("")).await.unwrap();
    second(&locks).await.is_refused(RejectionKind::Done);
    let mut body = response.into_body();
    feed.send(data("event 1")).unwrap();
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "event 1");
    drop(body);
    assert!(feed.is_closed());
    assert_eq!(store.taken(), 1);
}

#[tokio::test]
async fn a_body_that_is_copied_while_it_is_sent_is_kept_at_its_end() {
    let (locks, _) = embedded();
    let streamed = fed(vec![data("event 1,"), data("event 2")]);
    first_of(&locks, Replay::default(), END, streamed)
        .await
        .unwrap();
    second(&locks).await.is_replay("event 1,event 2");
}

#[tokio::test]
async fn a_client_that_leaves_half_way_finds_the_request_done() {
    let (locks, _) = embedded();
    let (feed, body) = mpsc::unbounded_channel();
    let body = std::sync::Arc::new(std::sync::Mutex::new(Some(Fed(body))));
    let layer = paying(&locks, Replay::default()).release_at(END);
    let service = answering(&layer, move |_| {
        Response::new(body.lock().unwrap().take().unwrap())
    });
    let response = service.oneshot(pay("")).await.unwrap();
    second(&locks).await.is_refused(RejectionKind::InFlight);
    feed.send(data("half")).unwrap();
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    until_free_or_done(&locks)
        .await
        .is_refused(RejectionKind::Done);
}

/// Sends duplicates until the release of the first request has been answered.
async fn until_free_or_done(locks: &LockManager) -> Reply {
    loop {
        let reply = second(locks).await;
        if reply.kind != Some(RejectionKind::InFlight) {
            return reply;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_body_that_fails_is_not_remembered() {
    for end in [HEAD, END] {
        let (locks, _) = embedded();
        let broken = Announced(fed(vec![data("12"), Err("cut off")]), 4);
        let error = first_of(&locks, Replay::default(), end, broken)
            .await
            .unwrap_err();
        assert_eq!(error, "cut off");
        until_free_or_done(&locks).await.is_first("another run");
    }
    let (locks, _) = embedded();
    let broken = fed(vec![data("12"), Err("cut off")]);
    first_of(&locks, Replay::default(), END, broken)
        .await
        .unwrap_err();
    until_free_or_done(&locks).await.is_first("another run");
}

#[tokio::test]
async fn a_body_that_lies_about_its_length_is_done_and_reaches_its_client_unchanged() {
    let small = || Replay::default().largest_body(6);
    for frames in [
        vec!["12"],
        vec!["12345"],
        vec!["1234", "5"],
        vec!["1234", "5678", "9"],
    ] {
        let (locks, _) = embedded();
        let sent = fed(frames.iter().copied().map(data).collect());
        let got = first_of(&locks, small(), HEAD, Announced(sent, 4))
            .await
            .unwrap();
        assert_eq!(got, frames.concat());
        second(&locks).await.is_refused(RejectionKind::Done);
    }
}

/// A server cuts such an answer at the length that it has announced, so that its client knows.
#[tokio::test]
async fn a_body_that_lies_about_its_length_is_sent_with_the_length_that_it_announced() {
    use crate::on_sockets::{connect_and_send, serve};
    use tokio::io::AsyncReadExt;

    for (sent, arrives) in [("12", "12"), ("12345", "1234")] {
        let (locks, _) = embedded();
        let layer = paying(&locks, Replay::default());
        let service = layer.layer(service_fn(move |_: Received| async move {
            let body = Announced(fed(vec![data(sent)]), 4);
            Ok::<_, Infallible>(Response::new(body))
        }));
        let app =
            service_fn(move |_: http::Request<axum::body::Body>| service.clone().oneshot(pay("")));
        let address = serve(axum::Router::new().fallback_service(app)).await;
        let request = "POST / HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n\r\n";
        let mut client = connect_and_send(address, request).await;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("content-length: 4\r\n"), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{arrives}")), "{answer}");
    }
}

#[tokio::test]
async fn the_log_says_once_that_answers_cannot_be_kept() {
    let log = crate::log::ThisThread::listen();
    let (locks, _) = embedded();
    let layer = paying(&locks, Replay::default()).name("streams");
    let service = answering(&layer, |_| Response::new(fed(vec![data("a")])));
    for key in ["k1", "k2", "k3"] {
        send(&service, request("alice", key, ""))
            .await
            .is_first("a");
    }
    let lines = log.lines("cannot be replayed");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let says = |word| assert!(lines[0].contains(word), "{word}: {lines:?}");
    ["WARN", "streams", "known length"]
        .into_iter()
        .for_each(says);
}

#[tokio::test]
async fn the_body_of_a_replay_knows_its_length() {
    let (locks, _) = embedded();
    let service = answering(&paying(&locks, Replay::default()), |_| created("paid"));
    send(&service, pay("")).await;
    let mut replay = service.oneshot(pay("")).await.unwrap().into_body();
    assert_eq!(replay.size_hint().exact(), Some(4));
    assert!(replay.frame().await.is_some());
    assert!(replay.is_end_stream());
}

#[tokio::test]
async fn a_body_that_panics_is_not_remembered() {
    struct Panics;
    impl http_body::Body for Panics {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            panic!("in the body")
        }
        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(4)
        }
    }
    for end in [HEAD, END] {
        let (locks, store) = embedded();
        let request = {
            let locks = locks.clone();
            tokio::spawn(async move { first_of(&locks, Replay::default(), end, Panics).await })
        };
        assert!(request.await.unwrap_err().is_panic());
        all_released(&locks).await;
        assert_eq!(store.taken(), 0);
    }
}

//! gRPC: an answer ends with trailers, and an error may stand in them.

use std::convert::Infallible;

use crate::common::{Body, Ends, Fed, all_released, data, embedded};
use crate::log::ThisThread;
use crate::replay::steps::*;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use lock_tower::{RejectionKind, ReleaseAt, Remember, Replay};
use tokio::sync::mpsc;
use tower::{Service, ServiceExt};

fn trailers(status: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    trailers.insert("grpc-message", "m".parse().unwrap());
    trailers.insert("x-trace", "secret".parse().unwrap());
    trailers
}

fn unary(status: &'static str) -> Response<Fed> {
    let (feed, body) = mpsc::unbounded_channel();
    feed.send(data("message")).unwrap();
    feed.send(Ok(Frame::trailers(trailers(status)))).unwrap();
    let mut response = Response::new(Fed(body));
    let headers = response.headers_mut();
    headers.insert("content-type", "application/grpc".parse().unwrap());
    response
}

#[tokio::test]
async fn a_grpc_answer_is_repeated_with_its_trailers() {
    for end in [ReleaseAt::Head, ReleaseAt::BodyEnd] {
        let (locks, _) = embedded();
        let layer = paying(&locks, Replay::default()).release_at(end);
        let service = answering(&layer, |_| unary("0"));
        let first = send(&service, pay("")).await;
        first.is_first("message");
        assert_eq!(first.trailers, Some(trailers("0")));
        let second = send(&service, pay("")).await;
        second.is_replay("message");
        assert_eq!(second.header("content-type"), Some("application/grpc"));
        let mut kept = trailers("0");
        kept.remove("x-trace");
        assert_eq!(second.trailers, Some(kept));
    }
}

#[tokio::test]
async fn a_grpc_error_in_the_head_or_in_the_trailers_is_not_remembered() {
    for end in [ReleaseAt::Head, ReleaseAt::BodyEnd] {
        let (locks, store) = embedded();
        let layer = paying(&locks, Replay::default()).release_at(end);
        let service = answering(&layer, |_| unary("13"));
        for _ in 0..2 {
            send(&service, pay("")).await.is_first("message");
            assert_eq!(store.taken(), 0);
        }
    }
    let (locks, store) = embedded();
    let layer = paying(&locks, Replay::default()).release_at(ReleaseAt::BodyEnd);
    let service = answering(&layer, |_| {
        let mut response = created("");
        response
            .headers_mut()
            .insert("grpc-status", "5".parse().unwrap());
        response
    });
    for _ in 0..2 {
        send(&service, pay("")).await.is_first("");
    }
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

/// Sends duplicates until the release of the first request has been answered.
async fn until_released<S, B>(service: &S) -> Reply
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone,
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    loop {
        let reply = send(service, pay("")).await;
        if reply.kind != Some(RejectionKind::InFlight) {
            return reply;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_grpc_error_in_the_trailers_is_remembered_if_the_handler_says_so() {
    for (end, length) in [
        (ReleaseAt::Head, None),
        (ReleaseAt::BodyEnd, None),
        (ReleaseAt::Head, Some(7)),
        (ReleaseAt::BodyEnd, Some(7)),
    ] {
        for remember in [Remember::Answer, Remember::Done] {
            let (locks, _) = embedded();
            let layer = paying(&locks, Replay::default()).release_at(end);
            let service = answering(&layer, move |_| {
                let (mut head, _) = unary("9").into_parts();
                head.extensions.insert(remember);
                let frames = [
                    Frame::data("message".into()),
                    Frame::trailers(trailers("9")),
                ];
                let frames = frames.into();
                Response::from_parts(head, Ends { frames, length })
            });
            send(&service, pay("")).await.is_first("message");
            // A body that knows its end does not wait for the release.
            let second = until_released(&service).await;
            if remember == Remember::Done {
                second.is_refused(RejectionKind::Done);
                continue;
            }
            second.is_replay("message");
            let trailers = second.trailers.expect("trailers");
            assert_eq!(trailers["grpc-status"], "9");
        }
    }
}

/// A server polls no frame behind the trailers, and most bodies do not say that the trailers are their end.
#[tokio::test]
async fn a_grpc_answer_is_whole_when_a_server_has_its_trailers() {
    for end in [ReleaseAt::Head, ReleaseAt::BodyEnd] {
        let (locks, _) = embedded();
        let layer = paying(&locks, Replay::default()).release_at(end);
        let service = answering(&layer, |_| unary("0"));
        let first = service.clone().oneshot(pay("")).await.unwrap();
        let mut body = first.into_body();
        while !body.frame().await.unwrap().unwrap().is_trailers() {}
        drop(body);
        until_released(&service).await.is_replay("message");
    }
}

#[tokio::test]
async fn an_answer_whose_body_knows_its_end_is_recorded_without_a_warning() {
    let log = ThisThread::listen();
    for (end, length) in [
        (ReleaseAt::Head, None),
        (ReleaseAt::BodyEnd, None),
        (ReleaseAt::BodyEnd, Some(7)),
    ] {
        for with_trailers in [true, false] {
            let (locks, _) = embedded();
            let layer = paying(&locks, Replay::default()).release_at(end);
            let service = answering(&layer, move |_| {
                let trailers = with_trailers.then(|| Frame::trailers(trailers("0")));
                let frames = [Some(Frame::data("message".into())), trailers];
                let frames = frames.into_iter().flatten().collect();
                unary("0").map(|_| Ends { frames, length })
            });
            send(&service, pay("")).await.is_first("message");
            if with_trailers || length.is_none() {
                send(&service, pay("")).await.is_replay("message");
            }
            until_released(&service).await.is_replay("message");
            all_released(&locks).await;
        }
    }
    let lines = log.lines("has not confirmed");
    assert!(lines.is_empty(), "{lines:?}");
}

/// The trailers are behind the body, so the outcome is not known before.
#[tokio::test]
async fn a_grpc_answer_holds_its_key_until_its_trailers_are_sent() {
    let (locks, _) = embedded();
    let layer = paying(&locks, Replay::default());
    let service = answering(&layer, |_| unary("0"));
    let first = service.clone().oneshot(pay("")).await.unwrap();
    send(&service, pay(""))
        .await
        .is_refused(RejectionKind::InFlight);
    read(first).await.is_first("message");
    send(&service, pay("")).await.is_replay("message");
}

//! Locks that are held until the body of the response has ended.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::common::*;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use lock_core::LockManager;
use lock_tower::{LockContext, LockLayer, RejectionKind, ReleaseAt, ResponseBody};
use tokio::sync::{Mutex, mpsc};
use tower::{Layer, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);
const TTL: Duration = Duration::from_secs(10);

fn streaming(locks: &LockManager) -> LockLayer {
    per_user_and_route(locks)
        .ttl(TTL)
        .release_at(ReleaseAt::BodyEnd)
}

/// The head of a response, and the sender of its body.
async fn begun(layer: &LockLayer) -> (ResponseBody<Fed>, mpsc::UnboundedSender<Sent>) {
    let (feed, fed) = mpsc::unbounded_channel();
    let fed = Arc::new(Mutex::new(Some(Fed(fed))));
    let service = layer.layer(service_fn(move |_: Request<Body>| {
        let fed = fed.clone();
        async move {
            let fed = fed.lock().await.take().expect("one request");
            Ok::<_, std::convert::Infallible>(Response::new(fed))
        }
    }));
    let response = service.oneshot(click("42")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    (response.into_body(), feed)
}

async fn second_click(layer: &LockLayer) -> Answer {
    send(&layer.layer(answers(StatusCode::OK)), click("42")).await
}

#[tokio::test]
async fn the_lock_is_held_and_renewed_until_the_body_has_ended() {
    let (locks, clock) = with_clock().await;
    let layer = streaming(&locks);
    let (mut body, feed) = begun(&layer).await;
    for _ in 0..9 {
        feed.send(data("part")).unwrap();
        assert!(body.frame().await.unwrap().unwrap().is_data());
        clock.advance(TTL / 3);
        until(|| locks.held()[0].remaining() > TTL * 4 / 5).await; // the keeper has renewed it
        assert_eq!(
            second_click(&layer).await.kind(),
            Some(RejectionKind::InFlight)
        );
    }
    drop(feed);
    assert!(body.frame().await.is_none());
    assert_eq!(locks.test_store().unwrap().taken(), 0, "at the end");
    assert!(body.frame().await.is_none(), "and it stays ended");
    assert_eq!(second_click(&layer).await.status, StatusCode::OK);
    drop(body);
}

#[tokio::test]
async fn trailers_pass_and_the_cooldown_begins_at_the_end() {
    let (locks, clock) = with_clock().await;
    let layer = streaming(&locks).cooldown(TTL);
    let (mut body, feed) = begun(&layer).await;
    clock.advance(TTL / 2);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    feed.send(Ok(Frame::trailers(trailers.clone()))).unwrap();
    drop(feed);
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_trailers().unwrap(), trailers);
    assert!(body.frame().await.is_none());
    let refused = second_click(&layer).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    assert_eq!(refused.retry_after, Some(10));
}

#[tokio::test]
async fn a_minimum_interval_counts_from_the_grant_and_not_from_the_end() {
    let (locks, clock) = with_clock().await;
    let layer = streaming(&locks).min_interval(Duration::from_secs(3));
    let (mut body, feed) = begun(&layer).await;
    clock.advance(Duration::from_secs(2));
    drop(feed);
    assert!(body.frame().await.is_none());
    let refused = second_click(&layer).await;
    assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    assert_eq!(refused.retry_after, Some(1));
    clock.advance(Duration::from_secs(1));
    assert_eq!(second_click(&layer).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_body_that_is_dropped_half_way_releases_the_lock_and_its_cooldown_counts() {
    for cooldown in [Duration::ZERO, HOUR] {
        let (locks, store) = embedded();
        let layer = streaming(&locks).cooldown(cooldown);
        let (mut body, feed) = begun(&layer).await;
        feed.send(data("half")).unwrap();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert!(feed.is_closed(), "the inner body is dropped with it");
        assert_eq!(layer.in_flight().count(), 0);
        all_released(&locks).await;
        assert_eq!(store.taken(), usize::from(!cooldown.is_zero()));
    }
}

#[tokio::test]
async fn a_body_that_fails_is_followed_by_no_cooldown() {
    let (locks, store) = embedded();
    let layer = streaming(&locks).cooldown(HOUR);
    let (mut body, feed) = begun(&layer).await;
    feed.send(Err("cut off")).unwrap();
    assert_eq!(body.frame().await.unwrap().unwrap_err(), "cut off");
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_grpc_stream_that_fails_in_its_trailers_is_followed_by_no_cooldown() {
    let (locks, store) = embedded();
    let layer = streaming(&locks).cooldown(HOUR);
    let (mut body, feed) = begun(&layer).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "13".parse().unwrap());
    feed.send(Ok(Frame::trailers(trailers))).unwrap();
    drop(feed);
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert!(body.frame().await.is_none());
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_body_that_is_never_polled_releases_the_lock_when_it_is_dropped() {
    let (locks, store) = embedded();
    let (body, _feed) = begun(&streaming(&locks)).await;
    assert_eq!(store.taken(), 1);
    drop(body);
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

/// Records, when it is dropped, whether the lock is held.
struct Witness(LockContext, mpsc::UnboundedSender<bool>);

impl http_body::Body for Witness {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.is_valid());
    }
}

#[tokio::test]
async fn a_body_is_dropped_before_its_lock_is_released() {
    let (locks, store) = embedded();
    let (sender, mut dropped) = mpsc::unbounded_channel();
    let service = streaming(&locks).layer(service_fn(move |request: Request<Body>| {
        let witness = Witness(context(&request), sender.clone());
        async { Ok::<_, std::convert::Infallible>(Response::new(witness)) }
    }));
    drop(service.oneshot(click("42")).await.unwrap());
    assert_eq!(dropped.recv().await, Some(true));
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[test]
fn a_response_that_outlives_its_runtime_releases_its_lock() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    for ends in [false, true] {
        let (locks, store) = embedded();
        let serving = runtime();
        let (mut body, feed) = serving.block_on(begun(&streaming(&locks)));
        drop(serving);
        assert_eq!(store.taken(), 1);
        drop(feed);
        if ends {
            while poll_once(std::pin::pin!(body.frame())).is_pending() {
                std::thread::yield_now();
            }
        }
        drop(body);
        runtime().block_on(async {
            until(|| store.taken() == 0).await;
        });
    }
}

#[tokio::test]
async fn a_body_that_knows_its_end_releases_the_lock_with_its_last_frame() {
    let (locks, store) = embedded();
    let service = streaming(&locks).layer(answers(StatusCode::OK));
    let mut body = service.oneshot(click("42")).await.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), Some(4), "as without the layer");
    assert!(!body.is_end_stream());
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "done"
    );
    assert!(body.is_end_stream());
    // No frame is polled after the last one, and the body still exists.
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
    drop(body);
}

#[tokio::test]
async fn a_release_that_hangs_holds_the_end_back_no_longer_than_its_bound() {
    let (locks, store) = patient().await;
    let layer = streaming(&locks).release_timeout(Duration::from_millis(1));
    let (mut body, feed) = begun(&layer).await;
    store.hang();
    drop(feed);
    assert!(body.frame().await.is_none());
    store.recover();
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn trailers_are_the_end_that_waits_for_the_release() {
    let (locks, store) = patient().await;
    let layer = streaming(&locks).release_timeout(HOUR);
    let (mut body, feed) = begun(&layer).await;
    feed.send(data("part")).unwrap();
    assert!(body.frame().await.unwrap().unwrap().is_data());
    store.hang();
    feed.send(Ok(Frame::trailers(HeaderMap::new()))).unwrap();
    for _ in 0..3 {
        assert!(poll_once(std::pin::pin!(body.frame())).is_pending());
        tokio::task::yield_now().await;
    }
    store.recover();
    assert!(in_time(body.frame()).await.unwrap().unwrap().is_trailers());
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_body_of_unknown_length_that_knows_its_end_waits_for_the_release_too() {
    let (locks, store) = embedded();
    for trailers in [None, Some(Frame::trailers(HeaderMap::new()))] {
        let frames = [Some(Frame::data("part".into())), trailers];
        let frames: VecDeque<_> = frames.into_iter().flatten().collect();
        let ends = Ends {
            frames,
            length: None,
        };
        let ends = Arc::new(Mutex::new(Some(ends)));
        let service = streaming(&locks).layer(service_fn(move |_: Request<Body>| {
            let ends = ends.clone();
            async move {
                let ends = ends.lock().await.take().expect("one request");
                Ok::<_, std::convert::Infallible>(Response::new(ends))
            }
        }));
        let mut body = service.oneshot(click("42")).await.unwrap().into_body();
        assert!(body.frame().await.unwrap().unwrap().is_data());
        assert!(!body.is_end_stream());
        assert_eq!(store.taken(), 1);
        body.frame().await;
        assert_eq!(store.taken(), 0, "at the end");
        assert!(body.is_end_stream());
    }
}

#[tokio::test]
async fn an_end_that_is_held_back_may_be_dropped() {
    let (locks, store) = embedded();
    let layer = streaming(&locks).release_timeout(HOUR);
    let (mut body, feed) = begun(&layer).await;
    store.hang();
    drop(feed);
    for _ in 0..3 {
        assert!(poll_once(std::pin::pin!(body.frame())).is_pending());
        tokio::task::yield_now().await;
    }
    drop(body);
    store.recover();
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn an_inner_error_has_no_body_and_releases_at_once() {
    let (locks, store) = embedded();
    let service = streaming(&locks).layer(service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>("declined")
    }));
    assert_eq!(service.oneshot(click("42")).await.unwrap_err(), "declined");
    assert_eq!(store.taken(), 0);
}

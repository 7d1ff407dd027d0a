//! Keys that are made from the body: the body that the handler then reads, and refusals.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::*;
use crate::script::Event::{self, Data, Empty, Error, Late, Pause, Silence, Trailers};
use crate::script::{Script, post};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use lock_core::LockManager;
use lock_tower::key::WithBody;
use lock_tower::{LockContext, LockLayer, MissingKey, RejectionKind, RequestBody};
use tower::{Layer, Service, ServiceExt, service_fn};

const LIMIT: usize = 10;

/// Makes a layer whose key is the whole body.
fn layer(locks: &LockManager) -> LockLayer<WithBody> {
    LockLayer::body_template(locks.clone(), "k:<header.x-user-id>:<body>", LIMIT).unwrap()
}

/// Makes a service that responds with all frames that it reads.
fn echo() -> impl Service<
    Request<RequestBody<Script>>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Send,
> + Clone
+ Send {
    service_fn(|request: Request<RequestBody<Script>>| async move {
        let locked = request.extensions().get::<LockContext>();
        let locked = locked.is_some_and(LockContext::is_locked);
        let mut body = request.into_body();
        let announced = http_body::Body::size_hint(&body).exact();
        let mut read = format!("locked={locked} length={announced:?}");
        while let Some(frame) = body.frame().await {
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => read += &format!(" {}", String::from_utf8_lossy(&data)),
                Ok(Err(trailers)) => {
                    read += &format!(" {:?}", trailers.into_trailers().unwrap()["checksum"])
                }
                Err(error) => read += &format!(" {error}"),
            }
        }
        assert!(http_body::Body::is_end_stream(&body));
        Ok(Response::new(Body::from(read)))
    })
}

async fn answer(layer: LockLayer<WithBody>, request: Request<Script>) -> Answer {
    read(layer.layer(echo()).oneshot(request).await.unwrap()).await
}

#[tokio::test]
async fn the_handler_reads_the_same_bytes_and_trailers() {
    let (locks, store) = embedded();
    let body = Script::of([Data(b"ab"), Pause, Data(b""), Data(b"cde"), Trailers("5")]);
    let answer = answer(layer(&locks), post(body)).await;
    assert_eq!(answer.text, "locked=true length=Some(5) abcde \"5\"");
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_a_413() {
    let (locks, store) = embedded();
    for (frames, status) in [
        ([Data(b"0123456789"), Data(b"")], StatusCode::OK),
        ([Data(b"01234"), Data(b"56789")], StatusCode::OK),
        (
            [Data(b"0123456789a"), Data(b"")],
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            [Data(b"0123456789"), Data(b"a")],
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
    ] {
        let length: usize = frames
            .iter()
            .map(|frame| {
                if let Data(bytes) = frame {
                    bytes.len()
                } else {
                    0
                }
            })
            .sum();
        for body in [
            Script::of(frames.clone()),
            Script::of(frames.clone()).announcing(length as u64),
        ] {
            let answer = answer(layer(&locks), post(body)).await;
            assert_eq!(answer.status, status);
            if status != StatusCode::OK {
                assert_eq!(answer.kind(), Some(RejectionKind::BodyTooLarge));
                assert_eq!(answer.problem()["code"], "lock_body_too_large");
                assert_eq!(
                    answer.content_type.as_deref(),
                    Some("application/problem+json")
                );
            }
        }
    }
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_body_with_a_declared_length_above_the_limit_or_without_a_user_is_not_read() {
    let (locks, _) = embedded();
    let too_large = Script::of([Data(b"a")]).announcing(11);
    let polls = Arc::clone(&too_large.polls);
    let refused = answer(layer(&locks), post(too_large)).await;
    assert_eq!(refused.kind(), Some(RejectionKind::BodyTooLarge));
    assert_eq!(polls.load(Ordering::Relaxed), 0);

    let anonymous = Script::of([Data(b"a")]);
    let polls = Arc::clone(&anonymous.polls);
    let refused = answer(layer(&locks), Request::post("/").body(anonymous).unwrap()).await;
    assert_eq!(refused.kind(), Some(RejectionKind::KeyMissing));
    assert_eq!(polls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_a_408_and_one_that_breaks_off_a_400() {
    let (locks, store) = embedded();
    let impatient = layer(&locks).body_timeout(Duration::from_millis(1));
    let refused = answer(impatient, post(Script::of([Data(b"a"), Silence]))).await;
    assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(refused.kind(), Some(RejectionKind::BodyTimeout));
    assert_eq!(refused.problem()["code"], "lock_body_timeout");

    let refused = answer(layer(&locks), post(Script::of([Data(b"a"), Error]))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.kind(), Some(RejectionKind::BodyIncomplete));
    assert_eq!(refused.problem()["code"], "lock_body_incomplete");
    assert_eq!(store.taken(), 0);
}

/// Empty frames never reach the limit. Only the timeout ends the read, and the task yields until then.
#[tokio::test]
async fn a_body_of_empty_frames_is_a_408_and_blocks_no_other_task() {
    let (locks, store) = embedded();
    let body = Script::of([Empty]);
    let polls = Arc::clone(&body.polls);
    let impatient = layer(&locks).body_timeout(Duration::from_millis(1));
    let mut request = Box::pin(impatient.layer(echo()).oneshot(post(body)));
    assert!(poll_once(request.as_mut()).is_pending());
    assert_eq!(polls.load(Ordering::Relaxed), 1);
    let refused = read(request.await.unwrap()).await;
    assert_eq!(refused.kind(), Some(RejectionKind::BodyTimeout));
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_request_that_is_dropped_while_its_body_is_read_leaves_nothing() {
    let (locks, store) = embedded();
    let service = layer(&locks).layer(service_fn(|_: Request<RequestBody<Script>>| async {
        panic!("the handler ran");
        #[allow(unreachable_code, reason = "says the type")]
        ok(StatusCode::OK)
    }));
    let body = Script::of([Data(b"a"), Silence]);
    let polls = Arc::clone(&body.polls);
    let mut request = Box::pin(service.oneshot(post(body)));
    assert!(poll_once(request.as_mut()).is_pending());
    assert_eq!(polls.load(Ordering::Relaxed), 2);
    drop(request);
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_body_that_is_not_locked_streams_unchanged() {
    let (locks, _) = embedded();
    let frames = [Data(b"0123456789"), Pause, Data(b"abc"), Trailers("13")];
    let mut get = post(Script::of(frames.clone()).announcing(13));
    *get.method_mut() = Method::GET;
    let passed = answer(layer(&locks), get).await;
    assert_eq!(
        passed.text,
        "locked=false length=Some(13) 0123456789 abc \"13\""
    );
    // The layer does not read a body that no part of the key needs.
    let by_head = LockLayer::body_template(locks, "k:<header.x-user-id>", LIMIT).unwrap();
    let passed = answer(by_head, post(Script::of(frames))).await;
    assert_eq!(passed.text, "locked=true length=None 0123456789 abc \"13\"");
}

#[tokio::test]
async fn a_request_that_passes_without_a_key_keeps_its_whole_body() {
    let (locks, _) = embedded();
    let form = || LockLayer::body_template(locks.clone(), "k:<form.token>", LIMIT).unwrap();
    let passing = form().on_missing_key(MissingKey::Pass);
    let passed = answer(
        passing,
        post(Script::of([Data(b"a="), Data(b"1"), Trailers("3")])),
    )
    .await;
    assert_eq!(passed.text, "locked=false length=Some(3) a=1 \"3\"");
    let refused = answer(form(), post(Script::of([Data(b"a=1")]))).await;
    assert_eq!(refused.kind(), Some(RejectionKind::KeyMissing));
    assert!(refused.text.contains("form.token"), "{}", refused.text);
}

#[tokio::test]
async fn in_shadow_mode_the_handler_reads_the_whole_body() {
    let (locks, _) = embedded();
    let shadow = || layer(&locks).shadow();
    let too_large = Script::of([
        Data(b"012345"),
        Data(b"6789a"),
        Pause,
        Data(b"bc"),
        Trailers("13"),
    ]);
    let passed = answer(shadow(), post(too_large)).await;
    assert_eq!(
        passed.text,
        "locked=false length=None 0123456789a bc \"13\""
    );
    let announced = Script::of([Data(b"0123456789abc")]).announcing(13);
    let passed = answer(shadow(), post(announced)).await;
    assert_eq!(passed.text, "locked=false length=Some(13) 0123456789abc");
    let broken = Script::of([Data(b"ab"), Error]);
    let passed = answer(shadow(), post(broken)).await;
    assert_eq!(
        passed.text,
        "locked=false length=None ab the client has gone"
    );
    let slow = Script::of([Data(b"ab"), Late, Late, Data(b"cd")]);
    let passed = answer(shadow().body_timeout(Duration::from_millis(1)), post(slow)).await;
    assert_eq!(passed.text, "locked=false length=None ab cd");
}

#[tokio::test]
async fn two_bodies_that_differ_run_together_and_two_that_do_not_exclude_one_another() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = layer(&locks).layer(service_fn({
        let gate = gate.clone();
        move |_: Request<RequestBody<Script>>| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                ok(StatusCode::OK)
            }
        }
    }));
    let send = |frames: &[Event]| service.clone().oneshot(post(Script::of(frames.to_vec())));
    let one = tokio::spawn(send(&[Data(b"sku=1")]));
    let two = tokio::spawn(send(&[Data(b"sku=2")]));
    gate.entered(2).await;
    let again = read(send(&[Data(b"sku"), Data(b"=1")]).await.unwrap()).await;
    assert_eq!(again.kind(), Some(RejectionKind::InFlight));
    gate.let_through(2);
    assert_eq!(one.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(two.await.unwrap().unwrap().status(), StatusCode::OK);
}

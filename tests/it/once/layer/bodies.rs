//! Bodies of requests and answers: slow, long, broken, and with trailers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::{Frame, SizeHint};
use lock_tests::wait;
use lock_tower::{Disconnect, LockContext, Once, Refused, ReleaseAt, Remember, Replay};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::log::ThisThread;
use super::stage::{Db, Reply, Stage, User, app, effect, pay, request, send, with_body};
use crate::once::suite::Fixture;

type Part = Result<Frame<Bytes>, &'static str>;

/// A body that a test feeds.
struct Fed {
    parts: UnboundedReceiver<Part>,
    /// How often its reader has found nothing more.
    starved: Arc<AtomicUsize>,
    length: Option<u64>,
}

impl Fed {
    fn new() -> (UnboundedSender<Part>, Self) {
        let (sender, parts) = mpsc::unbounded_channel();
        let fed = Self {
            parts,
            starved: Arc::default(),
            length: None,
        };
        (sender, fed)
    }

    /// Makes a body whose parts are there.
    fn of(parts: impl IntoIterator<Item = Part>, length: Option<u64>) -> Body {
        let (sender, fed) = Self::new();
        for part in parts {
            sender.send(part).expect("a body");
        }
        Body::new(Self { length, ..fed })
    }
}

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let polled = self.parts.poll_recv(context);
        if polled.is_pending() {
            self.starved.fetch_add(1, Ordering::SeqCst);
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map(SizeHint::with_exact).unwrap_or_default()
    }
}

fn data(text: &'static str) -> Part {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

/// Makes a handler that writes an effect and answers with a body.
macro_rules! answering {
    ($fixture:ty, $body:expr) => {
        |once: Once<Db<$fixture>>| async move {
            let mut tx = once.begin().await?;
            effect::<$fixture, _>(&mut tx).await;
            Ok::<_, Refused>(Response::new($body))
        }
    };
}

pub(super) async fn a_slow_body_holds_no_connection<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), pay::<F>);
    let (sender, body) = Fed::new();
    let starved = Arc::clone(&body.starved);
    let answer = tokio::spawn(async move { send(&app, with_body(Body::new(body))).await });
    sender.send(data("te")).expect("a reader");
    // The first time may be that of a server that looks whether there is a body.
    wait::eventually("the handler waits for the rest", async || {
        starved.load(Ordering::SeqCst) > 0
    })
    .await;
    assert_eq!(stage.db.begun(), 0);
    sender.send(data("a")).expect("a reader");
    drop(sender);
    answer.await.expect("no panic").is(201);
    assert_eq!(stage.db.begun(), 1);
}

/// Sends a duplicate that has arrived in part, and waits until the layer waits for the rest.
async fn duplicate_in_part(app: &Router) -> (UnboundedSender<Part>, JoinHandle<Reply>) {
    let (sender, body) = Fed::new();
    let starved = Arc::clone(&body.starved);
    sender.send(data("te")).expect("a reader");
    let app = app.clone();
    let answer = tokio::spawn(async move { send(&app, with_body(Body::new(body))).await });
    wait::eventually("the layer waits for the rest", async || {
        starved.load(Ordering::SeqCst) > 0
    })
    .await;
    (sender, answer)
}

pub(super) async fn a_duplicate_whose_body_arrives_slowly_keeps_no_other_one_out<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), pay::<F>);
    let first = send(&app, request("tea")).await;
    first.is(201);
    let (same, slow) = duplicate_in_part(&app).await;
    send(&app, request("tea")).await.repeats(&first);
    let (other, reused) = duplicate_in_part(&app).await;

    // The record is forgotten meanwhile, and the next request runs. The others have found theirs before.
    stage.fixture.sql("DELETE FROM lockkit_once").await;
    send(&app, request("tea")).await.is(201);
    stage.has(2, 1).await;
    same.send(data("a")).expect("a reader");
    other.send(data("n")).expect("a reader");
    drop((same, other));
    slow.await.expect("no panic").repeats(&first);
    let reused = reused.await.expect("no panic");
    reused.is_refused(422, "lock_key_reused");
    stage.has(2, 1).await;
}

/// The record answers the repetition of its client.
pub(super) async fn a_duplicate_whose_client_leaves_does_not_hold_until_its_ttl<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let holding = stage.layer().on_disconnect(Disconnect::HoldUntilTtl);
    let app = app(holding, pay::<F>);
    let first = send(&app, request("tea")).await;
    first.is(201);
    let (_sender, left) = duplicate_in_part(&app).await;
    left.abort();
    assert!(left.await.expect_err("it was aborted").is_cancelled());
    send(&app, request("tea")).await.repeats(&first);
}

pub(super) async fn a_replay_that_is_sent_slowly_keeps_no_other_one_out<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let layer = stage.layer().release_at(ReleaseAt::BodyEnd);
    let app = app(layer, pay::<F>);
    let first = send(&app, request("tea")).await;
    first.is(201);
    let unread = app.clone().oneshot(request("tea")).await;
    send(&app, request("tea")).await.repeats(&first);
    drop(unread);
}

pub(super) async fn a_body_of_unknown_length_is_done<F: Fixture + 'static>() {
    let log = ThisThread::listen();
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), answering!(F, Fed::of([data("paid")], None)));
    let first = send(&app, request("")).await;
    assert_eq!(first.is(200).text, "paid");
    send(&app, request("")).await.is_refused(409, "lock_done");
    stage.has(1, 1).await;
    assert_eq!(log.lines("the body has no known length").len(), 1);
}

pub(super) async fn a_body_that_fails_rolls_back<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let broken = answering!(F, Fed::of([data("pa"), Err("broken")], Some(4)));
    let failed = send(&app(stage.layer(), broken), request("")).await;
    assert_eq!(failed.is(500).text, "");
    stage.has(0, 0).await;
    send(&app(stage.layer(), pay::<F>), request(""))
        .await
        .is(201);
}

pub(super) async fn too_large_is_done_and_committed<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let replay = || Replay::in_database(stage.db.clone()).largest_body(4);
    let large = app(stage.layer_of(replay()), answering!(F, Body::from("12345")));
    let first = send(&large, request("")).await;
    assert_eq!(first.is(200).text, "12345");
    let second = send(&large, request("")).await;
    second.is_refused(409, "lock_done").retries(None);
    stage.has(1, 1).await;
}

fn grpc(status: &'static str) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().expect("a value"));
    let body = Fed::of([data("message"), Ok(Frame::trailers(trailers))], None);
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(body).expect("a response")
}

pub(super) async fn a_grpc_call_that_fails_in_its_trailers_rolls_back<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    for (status, effects) in [("13", 0), ("0", 1)] {
        let call = move |once: Once<Db<F>>| async move {
            let mut tx = once.begin().await?;
            effect::<F, _>(&mut tx).await;
            Ok::<_, Refused>(grpc(status))
        };
        let app = app(stage.layer(), call);
        let first = send(&app, request("")).await;
        first.is(200);
        stage.has(effects, effects).await;
        if effects == 1 {
            send(&app, request("")).await.repeats(&first);
        }
    }
}

pub(super) async fn a_grpc_call_that_fails_in_its_trailers_is_remembered_if_the_handler_says_so<
    F: Fixture + 'static,
>() {
    for (remember, keeps) in [
        (Remember::Answer, false),
        (Remember::Answer, true),
        (Remember::Done, false),
        (Remember::Done, true),
    ] {
        let stage = Stage::<F>::start().await;
        let call = move |once: Once<Db<F>>, lock: LockContext| async move {
            let mut tx = once.begin().await?;
            effect::<F, _>(&mut tx).await;
            if keeps {
                tx.keep();
            }
            lock.remember(remember);
            Ok::<_, Refused>(grpc("9"))
        };
        let app = app(stage.layer(), call);
        let first = send(&app, request("")).await;
        first.is(200);
        stage.has(u64::from(keeps), 1).await;
        let second = send(&app, request("")).await;
        match remember {
            Remember::Answer => second.repeats(&first),
            _ => drop(second.is_refused(409, "lock_done")),
        }
        stage.has(u64::from(keeps), 1).await;
    }
}

pub(super) async fn a_grpc_call_whose_body_fails_stays_done<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let broken = |once: Once<Db<F>>, lock: LockContext| async move {
        let mut tx = once.begin().await?;
        effect::<F, _>(&mut tx).await;
        lock.remember(Remember::Done);
        let body = Fed::of([data("mess"), Err("broken")], None);
        let response = Response::builder().header("content-type", "application/grpc");
        Ok::<_, Refused>(response.body(body).expect("a response"))
    };
    let app = app(stage.layer(), broken);
    send(&app, request("")).await.is(500);
    stage.has(0, 1).await;
    send(&app, request("")).await.is_refused(409, "lock_done");
}

pub(super) async fn a_head_request_is_committed_and_not_recorded<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let layer = stage.layer().methods([Method::GET, Method::HEAD]);
    let route = Router::new().route("/payments", get(pay::<F>));
    let app = route.route_layer(layer).layer(Extension(User("alice")));
    let request = |method| {
        let request = Request::builder().method(method).uri("/payments");
        let request = request.header("idempotency-key", "k");
        request.body(Body::empty()).expect("a request")
    };
    send(&app, request(Method::HEAD)).await.is(201);
    stage.has(1, 0).await;
    let first = send(&app, request(Method::GET)).await;
    first.is(201);
    stage.has(2, 1).await;
    let head = send(&app, request(Method::HEAD)).await;
    assert_eq!((head.status.as_u16(), &*head.text), (201, ""));
    assert_eq!(head.headers["idempotency-replayed"], "true");
    assert_eq!(head.headers["content-length"], first.text.len().to_string());
}

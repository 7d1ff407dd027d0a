//! HTTP/2 on a real socket: many requests on one connection, and streams that are reset.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use crate::on_sockets;
use axum::Router;
use axum::body::Body as AxumBody;
use axum::routing::post;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lock_core::Wait;
use lock_tower::{Disconnect, LockLayer, ReleaseAt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tower::{ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);
const KEY: &str = "submit:42:POST:/orders";

type Client = SendRequest<Empty<Bytes>>;

/// Connects a client of HTTP/2.
pub(crate) async fn connect<B>(app: Router) -> SendRequest<B>
where
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static,
{
    let address = on_sockets::serve(app).await;
    let socket = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (client, connection) = handshake(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Serves, and counts the requests whose futures the server drops without a response.
async fn serve(app: Router) -> (Client, watch::Receiver<usize>) {
    let (dropped, receiver) = watch::channel(0);
    let outer = service_fn(move |request: Request<AxumBody>| {
        let (app, dropped) = (app.clone(), OnDrop(Some(dropped.clone())));
        async move {
            let mut dropped = dropped;
            let response = app.oneshot(request).await;
            dropped.0 = None;
            response
        }
    });
    let client = connect(Router::new().fallback_service(outer)).await;
    (client, receiver)
}

struct OnDrop(Option<watch::Sender<usize>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(dropped) = self.0.take() {
            dropped.send_modify(|count| *count += 1);
        }
    }
}

fn order(
    client: &Client,
) -> impl Future<Output = hyper::Result<http::Response<hyper::body::Incoming>>> + use<> {
    let request = Request::post("http://shop/orders").header("x-user-id", "42");
    client
        .clone()
        .send_request(request.body(Empty::new()).unwrap())
}

fn shop(layer: LockLayer, gate: &Gate) -> Router {
    let gate = gate.clone();
    let create = move || async move {
        gate.pass().await;
        (StatusCode::CREATED, "an order")
    };
    Router::new()
        .route("/orders", post(create))
        .route_layer(layer)
}

/// Sends an order, waits until it has reached `somewhere`, and resets its stream.
async fn reset(
    client: &Client,
    until: impl Future<Output = ()>,
    dropped: &mut watch::Receiver<usize>,
) {
    let before = *dropped.borrow();
    let request = tokio::spawn(order(client));
    until.await;
    request.abort();
    dropped.wait_for(|&count| count > before).await.unwrap();
}

#[tokio::test]
async fn two_clicks_on_one_connection_are_one_order() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let (client, _) = serve(shop(per_user_and_route(&locks), &gate)).await;
    let first = tokio::spawn(order(&client));
    gate.entered(1).await;
    let second = order(&client).await.unwrap();
    assert_eq!(second.status(), StatusCode::CONFLICT);
    assert!(second.headers().contains_key("retry-after"));
    let problem = second.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&problem).unwrap();
    assert_eq!(problem["code"], "lock_busy");
    gate.let_through(1);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::CREATED);
}

#[tokio::test]
async fn a_stream_that_is_reset_while_it_waits_for_the_lock_runs_no_handler() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let app = shop(per_user_and_route(&locks).wait(Wait::Forever), &gate);
    let (client, mut dropped) = serve(app).await;
    let held = locks.lock(KEY).acquire().await.unwrap();
    reset(
        &client,
        until(|| store.waiting() > 0 || !locks.held().is_empty()),
        &mut dropped,
    )
    .await;
    held.release().await.unwrap();
    all_released(&locks).await;
    assert_eq!(
        (gate.entered_so_far(), store.taken(), store.waiting()),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn a_stream_that_is_reset_while_its_handler_runs_follows_the_layers_policy() {
    for disconnect in [
        Disconnect::RunToEnd,
        Disconnect::Release,
        Disconnect::HoldUntilTtl,
    ] {
        let (locks, store) = embedded();
        let gate = Gate::closed();
        let layer = per_user_and_route(&locks).on_disconnect(disconnect);
        let orders = layer.in_flight();
        let (client, mut dropped) = serve(shop(layer, &gate)).await;
        reset(&client, gate.entered(1), &mut dropped).await;
        if disconnect == Disconnect::RunToEnd {
            assert_eq!(orders.count(), 1);
            assert_eq!(order(&client).await.unwrap().status(), StatusCode::CONFLICT);
            gate.let_through(1);
        }
        assert_eq!(orders.drain(HOUR).await, 0);
        all_released(&locks).await;
        let ran = usize::from(disconnect == Disconnect::RunToEnd);
        assert_eq!((gate.entered_so_far(), gate.ended_so_far()), (1, ran));
        let holds = usize::from(disconnect == Disconnect::HoldUntilTtl);
        assert_eq!(store.taken(), holds, "{disconnect:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_while_the_lock_is_released_leaves_no_lock() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks).release_timeout(HOUR);
    let orders = layer.in_flight();
    let (client, mut dropped) = serve(shop(layer, &gate)).await;
    let hung = async {
        gate.entered(1).await;
        store.hang();
        gate.let_through(1);
        until(|| gate.ended_so_far() == 1).await;
    };
    reset(&client, hung, &mut dropped).await;
    store.recover();
    assert_eq!(orders.drain(HOUR).await, 0);
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_stream_that_is_reset_while_its_answer_is_sent_releases_the_lock() {
    let (locks, store) = embedded();
    let (feed, fed) = mpsc::unbounded_channel();
    let fed = Arc::new(Mutex::new(Some(Fed(fed))));
    let stream = async move || AxumBody::new(fed.lock().unwrap().take().expect("one request"));
    let layer = per_user_and_route(&locks).release_at(ReleaseAt::BodyEnd);
    let orders = layer.in_flight();
    let app = Router::new()
        .route("/orders", post(stream))
        .route_layer(layer);
    let (client, _) = serve(app).await;

    feed.send(data("half")).unwrap();
    let mut body = order(&client).await.unwrap().into_body();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "half"
    );
    assert_eq!((orders.count(), store.taken()), (1, 1));
    assert_eq!(order(&client).await.unwrap().status(), StatusCode::CONFLICT);
    drop(body);
    feed.closed().await;
    assert_eq!(orders.drain(HOUR).await, 0);
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
    let next = order(&client).await.expect("the connection goes on");
    let drained = StatusCode::SERVICE_UNAVAILABLE;
    assert_eq!(next.status(), drained, "its manager is drained");
}

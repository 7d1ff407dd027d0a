//! A server on a real socket, and clients that disconnect.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use crate::on_sockets::{answer_until, connect_and_send, serve};
use axum::Router;
use axum::body::Body as AxumBody;
use axum::routing::post;
use http::{Request, StatusCode};
use lock_core::Wait;
use lock_tower::{LockLayer, ReleaseAt};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tower::{ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);
const CLICK: &str =
    "POST /orders HTTP/1.1\r\nhost: shop\r\nx-user-id: 42\r\ncontent-length: 0\r\n\r\n";

fn shop(layer: LockLayer, gate: &Gate) -> Router {
    let gate = gate.clone();
    let create = move || async move {
        gate.pass().await;
        (StatusCode::CREATED, "an order")
    };
    Router::new()
        .route("/orders", post(create).get("orders").head(|| async {}))
        .layer(layer)
}

/// Reports by its drop that the server has dropped the future of a request.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// The shop, and the requests whose futures its server has dropped.
fn observed(layer: LockLayer, gate: &Gate) -> (Router, mpsc::UnboundedReceiver<()>) {
    let (sender, dropped) = mpsc::unbounded_channel();
    let inner = shop(layer, gate);
    let outer = service_fn(move |request: Request<AxumBody>| {
        let (inner, dropped) = (inner.clone(), Dropped(sender.clone()));
        async move {
            let response = inner.oneshot(request).await;
            drop(dropped);
            response
        }
    });
    (Router::new().fallback_service(outer), dropped)
}

#[derive(Clone, Copy, Debug)]
enum Leaves {
    WithFin,
    WithReset,
    HalfClosed,
}

#[tokio::test]
async fn a_client_that_disconnects_gets_its_order_made_once_and_the_lock_released() {
    for leaves in Leaves::ALL {
        let (locks, store) = embedded();
        let gate = Gate::closed();
        let (app, mut dropped) = observed(per_user_and_route(&locks), &gate);
        let address = serve(app).await;

        let client = connect_and_send(address, CLICK).await;
        gate.entered(1).await;
        let _half_open = leaves.from(client).await;
        dropped.recv().await.expect("the server drops the request");
        assert_eq!((gate.ended_so_far(), store.taken()), (0, 1), "{leaves:?}");

        let mut second = connect_and_send(address, CLICK).await;
        let refused = answer_until(&mut second, "}").await;
        assert!(refused.starts_with("HTTP/1.1 409"), "{leaves:?}: {refused}");
        gate.let_through(1);
        all_released(&locks).await;
        assert_eq!(
            (gate.entered_so_far(), gate.ended_so_far()),
            (1, 1),
            "{leaves:?}"
        );
        assert_eq!(store.taken(), 0, "{leaves:?}");
    }
}

impl Leaves {
    const ALL: [Self; 3] = [Self::WithFin, Self::WithReset, Self::HalfClosed];

    /// Returns the rest of the connection.
    async fn from(self, mut client: TcpStream) -> Option<TcpStream> {
        match self {
            Leaves::WithFin => {}
            Leaves::WithReset => client.set_zero_linger().unwrap(),
            Leaves::HalfClosed => {
                client.shutdown().await.unwrap();
                return Some(client);
            }
        }
        None
    }
}

#[tokio::test]
async fn a_client_that_disconnects_while_the_lock_is_released_leaves_no_lock() {
    for leaves in Leaves::ALL {
        let (locks, store) = embedded();
        let gate = Gate::closed();
        let layer = per_user_and_route(&locks).release_timeout(HOUR);
        let orders = layer.in_flight();
        let (app, mut dropped) = observed(layer, &gate);
        let client = connect_and_send(serve(app).await, CLICK).await;
        gate.entered(1).await;
        store.hang();
        gate.let_through(1);
        until(|| gate.ended_so_far() == 1).await;
        let _half_open = leaves.from(client).await;
        dropped.recv().await.expect("the server drops the request");
        store.recover();
        assert_eq!(orders.drain(HOUR).await, 0);
        all_released(&locks).await;
        assert_eq!(store.taken(), 0, "{leaves:?}");
    }
}

/// A response without a known length, and the sender of its body.
fn streamed(layer: LockLayer) -> (Router, mpsc::UnboundedSender<Sent>) {
    let (feed, fed) = mpsc::unbounded_channel();
    let fed = Arc::new(Mutex::new(Some(Fed(fed))));
    let stream = async move || AxumBody::new(fed.lock().unwrap().take().expect("one request"));
    let app = Router::new().route("/orders", post(stream));
    (app.layer(layer.release_at(ReleaseAt::BodyEnd)), feed)
}

#[tokio::test]
async fn a_client_that_has_read_the_end_of_a_stream_finds_the_lock_free() {
    let (locks, store) = embedded();
    let (app, feed) = streamed(per_user_and_route(&locks));
    let mut client = connect_and_send(serve(app).await, CLICK).await;
    feed.send(data("half")).unwrap();
    answer_until(&mut client, "half\r\n").await;
    assert_eq!(store.taken(), 1);
    drop(feed);
    answer_until(&mut client, "0\r\n\r\n").await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_client_that_disconnects_while_its_answer_is_sent_releases_the_lock() {
    for leaves in Leaves::ALL {
        let (locks, store) = embedded();
        let layer = per_user_and_route(&locks);
        let orders = layer.in_flight();
        let (app, feed) = streamed(layer);
        let mut client = connect_and_send(serve(app).await, CLICK).await;
        feed.send(data("half")).unwrap();
        answer_until(&mut client, "half\r\n").await;
        assert_eq!((orders.count(), store.taken()), (1, 1));
        let _half_open = leaves.from(client).await;
        feed.closed().await;
        assert_eq!(orders.drain(HOUR).await, 0);
        all_released(&locks).await;
        assert_eq!(store.taken(), 0, "{leaves:?}");
    }
}

#[tokio::test]
async fn answers_to_head_and_those_of_a_known_length_end_as_without_the_layer() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    gate.let_through(2);
    let layer = per_user_and_route(&locks)
        .methods([http::Method::POST, http::Method::HEAD])
        .release_at(ReleaseAt::BodyEnd);
    let orders = layer.in_flight();
    let app = shop(layer, &gate);
    let address = serve(app).await;
    let mut client = connect_and_send(address, &CLICK.replace("POST", "HEAD")).await;
    let head = answer_until(&mut client, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(orders.drain(HOUR).await, 0);
    for _ in 0..2 {
        client.write_all(CLICK.as_bytes()).await.unwrap();
        let made = answer_until(&mut client, "an order").await.to_lowercase();
        assert!(made.contains("content-length: 8"), "{made}");
        // The layer may hold the lock of a response with a known length for a moment longer.
        assert_eq!(orders.drain(HOUR).await, 0);
    }
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_client_that_disconnects_while_it_waits_for_the_lock_runs_no_handler() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let (app, mut dropped) = observed(per_user_and_route(&locks).wait(Wait::Forever), &gate);
    let address = serve(app).await;
    let held = locks
        .lock("submit:42:POST:/orders")
        .acquire()
        .await
        .unwrap();

    let client = connect_and_send(address, CLICK).await;
    drop(client);
    dropped.recv().await.expect("the server drops the request");
    held.release().await.unwrap();
    all_released(&locks).await;
    assert_eq!(
        (gate.entered_so_far(), store.taken(), store.waiting()),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn after_a_graceful_shutdown_drain_waits_for_the_order_of_a_disconnected_client() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let (app, mut dropped) = observed(per_user_and_route(&locks), &gate);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = axum::serve(listener, app).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let server = tokio::spawn(async move { server.await });

    drop({
        let client = connect_and_send(address, CLICK).await;
        gate.entered(1).await;
        client
    });
    dropped.recv().await.expect("the server drops the request");
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
    assert_eq!(gate.ended_so_far(), 0, "the server does not wait for it");

    let mut drain = pin!(locks.drain(Duration::from_secs(60)));
    tokio::select! {
        biased;
        _ = &mut drain => panic!("drained while the order was under way"),
        () = tokio::task::yield_now() => gate.let_through(1),
    }
    assert!(drain.await.is_complete());
    assert_eq!(gate.ended_so_far(), 1);
}

#[tokio::test]
async fn a_refusal_has_its_length_and_leaves_the_connection_usable() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let address = serve(shop(per_user_and_route(&locks), &gate)).await;
    let held = locks
        .lock("submit:42:POST:/orders")
        .acquire()
        .await
        .unwrap();

    let mut client = connect_and_send(address, CLICK).await;
    let refused = answer_until(&mut client, "}").await.to_lowercase();
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("http/1.1 409"), "{head}");
    assert!(
        head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
    assert!(
        head.contains("content-type: application/problem+json"),
        "{head}"
    );
    assert!(head.contains("retry-after: "), "{head}");

    held.release().await.unwrap();
    gate.let_through(1);
    client.write_all(CLICK.as_bytes()).await.unwrap();
    let made = answer_until(&mut client, "an order").await.to_lowercase();
    assert!(made.starts_with("http/1.1 201"), "{made}");
    assert!(made.contains("content-length: 8"), "{made}");
}

#[tokio::test]
async fn get_and_head_pass_with_their_lengths_while_a_post_runs() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let address = serve(shop(per_user_and_route(&locks), &gate)).await;
    let mut first = connect_and_send(address, CLICK).await;
    gate.entered(1).await;

    let mut client = connect_and_send(address, &CLICK.replace("POST", "GET")).await;
    let got = answer_until(&mut client, "\r\n\r\norders")
        .await
        .to_lowercase();
    assert!(
        got.starts_with("http/1.1 200") && got.contains("content-length: 6"),
        "{got}"
    );
    client
        .write_all(CLICK.replace("POST", "HEAD").as_bytes())
        .await
        .unwrap();
    let head = answer_until(&mut client, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");

    gate.let_through(1);
    answer_until(&mut first, "an order").await;
}

/// A refusal of a HEAD request has the head of a response with a body, but no body.
#[tokio::test]
async fn a_refused_head_request_has_the_head_of_the_refusal_and_no_body() {
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks).methods([http::Method::HEAD]);
    let address = serve(shop(layer, &Gate::closed())).await;
    let head = "HEAD /orders HTTP/1.1\r\nhost: shop\r\n\r\n";
    let mut client = connect_and_send(address, &head.repeat(2)).await;
    let both = {
        let mut text = answer_until(&mut client, "\r\n\r\n").await;
        while text.matches("\r\n\r\n").count() < 2 {
            text += &answer_until(&mut client, "\r\n\r\n").await;
        }
        text
    };
    assert_eq!(both.matches("HTTP/1.1 400").count(), 2, "{both}");
    assert!(!both.contains('{'), "{both}");
}

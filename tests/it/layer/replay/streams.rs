//! Tests answers that stream, over real sockets.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::post;
use lock_tests::{RedisServer, http, needs};
use lock_tower::{ReleaseAt, Replay};
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::{assert_replay, pay, replaying};
use crate::layer::Server;
use crate::layer::streams::{FromChannel, Pieces};
use crate::shop::code;

/// Starts a server whose handler gives the test the sending end of each answer.
async fn streaming(
    redis: &RedisServer,
    release_at: ReleaseAt,
) -> (Server, mpsc::UnboundedReceiver<Pieces>) {
    let locks = crate::steps::manager(&redis.url()).await;
    let layer = replaying(&locks, Replay::default()).release_at(release_at);
    let (bodies, handed_out) = mpsc::unbounded_channel();
    let events = move || async move {
        let (pieces, body) = mpsc::unbounded_channel();
        bodies.send(pieces).expect("the test listens");
        Body::new(FromChannel(body))
    };
    let app = Router::new()
        .route("/payments", post(events))
        .route_layer(layer);
    (Server::serve(locks, app).await, handed_out)
}

fn piece(text: &'static str) -> Result<Bytes, std::convert::Infallible> {
    Ok(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn a_stream_begins_at_once_and_its_duplicates_are_refused_as_done() {
    needs!(redis);
    let redis = RedisServer::start();
    let (server, mut bodies) = streaming(&redis, ReleaseAt::Head).await;
    let headers = [("x-user-id", "secret-user"), ("idempotency-key", "k1")];
    let request = http::encode(server.port(), "POST", "/payments", &headers, "");
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await;
    let mut stream = stream.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let body = bodies.recv().await.expect("a handler");
    body.send(piece("event 1")).expect("the body is read");
    let mut text = String::new();
    while !text.contains("event 1") {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).await.expect("the answer goes on");
        assert!(read > 0, "it has not ended: {text}");
        text.push_str(str::from_utf8(&bytes[..read]).expect("text"));
    }
    let second = pay(server.port(), "k1", "").await;
    assert_eq!((second.status, &*code(&second)), (409, "lock_done"));
    drop(body);
}

#[tokio::test]
async fn an_answer_that_is_copied_while_it_is_sent_is_repeated_as_a_whole() {
    needs!(redis);
    let redis = RedisServer::start();
    let (server, mut bodies) = streaming(&redis, ReleaseAt::BodyEnd).await;
    let sending = async {
        let body = bodies.recv().await.expect("a handler");
        body.send(piece("one, ")).expect("the body is read");
        let refused = pay(server.port(), "k1", "").await;
        assert_eq!((refused.status, &*code(&refused)), (409, "lock_busy"));
        body.send(piece("two")).expect("the body is read");
    };
    let (first, ()) = tokio::join!(pay(server.port(), "k1", ""), sending);
    assert_eq!((first.status, &*first.body), (200, "one, two"));
    let mut second = pay(server.port(), "k1", "").await;
    assert_eq!(second.status, 200);
    second.status = 201;
    assert_replay(&second, "one, two");
}

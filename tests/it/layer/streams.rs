//! Tests answers that are made while they are sent, and whose lock is held meanwhile.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{RedisServer, http2, needs, wait};
use lock_tower::ReleaseAt;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::client::{Leaves, VERSIONS, Version};
use super::{Gate, Server, click, key, layer, nothing_is_left, server_on};
use crate::shop::code;

/// The channel by which the test writes into the answer under way.
pub(super) type Pieces = mpsc::UnboundedSender<Result<Bytes, Infallible>>;

/// A body that ends when its sender is dropped.
pub(super) struct FromChannel(pub(super) mpsc::UnboundedReceiver<Result<Bytes, Infallible>>);

impl http_body::Body for FromChannel {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(http_body::Frame::data)))
    }
}

/// Starts a server whose handler gives the test the sending end of each answer.
async fn streaming(redis: &RedisServer) -> (Server, mpsc::UnboundedReceiver<Pieces>) {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let layer = layer(&locks)
        .release_at(ReleaseAt::BodyEnd)
        .release_timeout(wait::PATIENCE);
    let (bodies, handed_out) = mpsc::unbounded_channel();
    let export = move |_: HeaderMap| async move {
        let (pieces, body) = mpsc::unbounded_channel();
        bodies.send(pieces).expect("the test listens");
        Body::new(FromChannel(body))
    };
    let app = Router::new()
        .route("/orders", post(export))
        .route_layer(layer);
    (Server::serve(locks, app).await, handed_out)
}

fn piece(text: &'static str) -> Result<Bytes, Infallible> {
    Ok(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn the_lock_of_an_answer_is_held_until_its_last_piece_was_sent() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let (here, mut bodies) = streaming(&redis).await;
        let there = server_on(&redis, &Gate::open()).await;
        let sending = async {
            let body = bodies.recv().await.expect("a handler");
            body.send(piece("one, ")).expect("the body is read");
            let refused = click(&there, "42").await;
            assert_eq!((refused.status, &*code(&refused)), (409, "lock_busy"));
            body.send(piece("two")).expect("the body is read");
        };
        let (answer, ()) = tokio::join!(version.post(&here, &[("x-user-id", "42")]), sending);
        assert_eq!((answer.status, &*answer.body), (200, "one, two"));
        // A client that has read the end finds the lock free.
        assert_eq!(click(&there, "42").await.status, 201, "{version:?}");
        nothing_is_left(&redis, &[&here, &there]).await;
    }
}

#[tokio::test]
async fn the_lock_of_an_answer_that_breaks_off_is_released() {
    needs!(redis);
    for how in super::client::WAYS {
        let redis = RedisServer::start();
        let (server, mut bodies) = streaming(&redis).await;
        let client = how.click(&server, "42").await;
        let body = bodies.recv().await.expect("a handler");
        body.send(piece("one, ")).expect("the body is read");
        assert!(redis.get(&key("42")).is_some());
        let rest = client.leave();
        // A server notices at its next write that a client has gone.
        wait::eventually("the lock is released", async || {
            let _ = body.send(piece("and more, "));
            redis.get(&key("42")).is_none()
        })
        .await;
        drop(rest);
        nothing_is_left(&redis, &[&server]).await;
        assert!(body.is_closed(), "{how:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_between_two_pieces_does_not_end_its_connection() {
    needs!(redis);
    let redis = RedisServer::start();
    let (server, mut bodies) = streaming(&redis).await;
    let connection = http2::Connection::open(server.port()).await.expect("open");
    let headers = [("x-user-id", "42")];
    let stream = connection
        .begin("POST", "/orders", &headers, http2::Body::None)
        .await;
    let stream = stream.expect("sent");
    let answer = async { stream.answer().await.expect("a head") };
    let body = async { bodies.recv().await.expect("a handler") };
    let (mut answer, body) = tokio::join!(answer, body);
    body.send(piece("one, ")).expect("the body is read");
    assert_eq!(
        answer.piece().await.expect("sent").as_deref(),
        Some("one, ")
    );
    answer.reset();
    wait::eventually("the lock is released", async || {
        redis.get(&key("42")).is_none()
    })
    .await;
    assert!(body.is_closed());

    let again = connection.request("POST", "/orders", &headers, "");
    let end = async { drop(bodies.recv().await.expect("a handler")) };
    let (again, ()) = tokio::join!(again, end);
    assert_eq!(again.expect("an answer").status, 200);
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn the_lock_of_a_client_that_reads_nothing_and_leaves_is_released() {
    needs!(redis);
    let redis = RedisServer::start();
    let (server, mut bodies) = streaming(&redis).await;
    let client = Leaves::HalfClosed.click(&server, "42").await;
    let body = bodies.recv().await.expect("a handler");
    // This is more than sockets and buffers hold.
    let much = Bytes::from(vec![b' '; 1 << 20]);
    for _ in 0..64 {
        body.send(Ok(much.clone())).expect("the body is kept");
    }
    assert!(redis.get(&key("42")).is_some());
    drop(client);
    wait::eventually("the lock is released", async || {
        redis.get(&key("42")).is_none()
    })
    .await;
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn a_head_request_gets_the_status_and_the_length_of_the_answer() {
    needs!(redis);
    let redis = RedisServer::start();
    let server = server_on(&redis, &Gate::open()).await;
    for version in VERSIONS {
        let head = match version {
            Version::Http1 => continue_with_head(&server).await,
            Version::Http2 => {
                let head = version.request(&server, "HEAD", "/orders", &[], "").await;
                (head.status, head.headers["content-length"].clone())
            }
        };
        assert_eq!(head, (200, "6".to_owned()), "{version:?}");
    }
}

/// Sends HEAD over HTTP/1, where the length is that of a body that is not sent.
async fn continue_with_head(server: &Server) -> (u16, String) {
    use tokio::io::AsyncWriteExt;

    let port = server.port();
    let address = ("127.0.0.1", port);
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("open");
    let text = lock_tests::http::encode(port, "HEAD", "/orders", &[], "");
    stream.write_all(text.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("closed");
    let answer = answer.to_ascii_lowercase();
    let (_, rest) = answer.split_once("content-length: ").expect("a length");
    assert!(answer.ends_with("\r\n\r\n"), "no body: {answer}");
    let status = answer["http/1.1 ".len()..][..3].parse();
    (
        status.expect("a status"),
        rest.lines().next().unwrap_or_default().to_owned(),
    )
}

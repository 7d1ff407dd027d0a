//! Tests the service behind its layer, over HTTP/2 on a real socket.

use axum::body::Bytes;
use axum::http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::TcpIncoming;

use super::*;

type Client = SendRequest<Full<Bytes>>;

async fn serve(locks: LockManager, orders: Orders) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let layer = one_order(locks).unwrap();
    let server = Server::builder().layer(layer).add_service(orders);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let socket = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (client, connection) = handshake(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns the status of a call, its message and its answer.
async fn create(client: &Client, user: Option<&str>) -> (i32, String, String) {
    let order = b"two mugs";
    let mut frame = vec![0, 0, 0, 0, u8::try_from(order.len()).unwrap()];
    frame.extend(order);
    let mut request = Request::post("http://shop/shop.Orders/Create")
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(user) = user {
        request = request.header("x-user-id", user);
    }
    let request = request.body(Full::from(frame)).unwrap();
    let response = client.clone().send_request(request).await.unwrap();
    assert_eq!(response.status(), 200, "the HTTP status of a gRPC answer");
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap_or_default();
    let text = |name| {
        let value = head.headers.get(name).or(trailers.get(name));
        value.map_or("", |value| value.to_str().unwrap()).to_owned()
    };
    let (status, message) = (text("grpc-status").parse().unwrap(), text("grpc-message"));
    let answer = body.to_bytes();
    let answer = answer.get(5..).unwrap_or_default().to_vec();
    (status, message, String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn a_call_is_answered_and_an_immediate_repetition_is_aborted() {
    let client = serve(LockManager::in_memory(), Orders::new(Duration::ZERO)).await;
    let (status, _, answer) = create(&client, Some("ada")).await;
    assert_eq!(status, Code::Ok as i32);
    assert!(
        answer.starts_with("two mugs under fencing token "),
        "{answer}"
    );
    let (status, message, _) = create(&client, Some("ada")).await;
    assert_eq!(
        (status, &*message),
        (Code::Aborted as i32, "lock_cooling_down")
    );
    assert_eq!(create(&client, Some("bob")).await.0, Code::Ok as i32);
}

#[tokio::test]
async fn a_call_that_overlaps_with_another_of_the_same_caller_is_aborted() {
    let locks = LockManager::in_memory();
    let client = serve(locks.clone(), Orders::new(Duration::from_secs(3600))).await;
    let first = tokio::spawn({
        let client = client.clone();
        async move { create(&client, Some("ada")).await }
    });
    while locks.held().is_empty() {
        tokio::task::yield_now().await;
    }
    let (status, message, _) = create(&client, Some("ada")).await;
    assert_eq!((status, &*message), (Code::Aborted as i32, "lock_busy"));
    first.abort();
}

#[tokio::test]
async fn a_call_without_a_caller_is_unauthenticated() {
    let client = serve(LockManager::in_memory(), Orders::new(Duration::ZERO)).await;
    let (status, message, _) = create(&client, None).await;
    assert_eq!(
        (status, &*message),
        (Code::Unauthenticated as i32, "lock_key_missing")
    );
}

//! Unusual and malformed requests over HTTP/1 (feature `axum`).

use std::time::Duration;

use crate::common::*;
use crate::on_sockets::{connect_and_send, read_until, serve};
use axum::Router;
use axum::routing::{any, post};
use http::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use lock_core::LockManager;
use lock_tower::LockLayer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HOUR: Duration = Duration::from_secs(3600);

/// Serves an order at every path and for every method.
fn shop(locks: &LockManager, template: &str, gate: &Gate) -> Router {
    let gate = gate.clone();
    let layer = LockLayer::template(locks.clone(), template).unwrap();
    let create = move || async move {
        gate.pass().await;
        (StatusCode::CREATED, "made!")
    };
    Router::new().fallback(any(create)).layer(layer)
}

fn order(line: &str) -> String {
    format!("{line}\r\nhost: shop\r\nx-user-id: 42\r\ncontent-length: 0\r\n\r\n")
}

/// Reads until `end` has arrived, and returns all that was read.
async fn answer_with(client: &mut TcpStream, looked_for: &str) -> String {
    read_until(client, |text| text.contains(looked_for)).await
}

/// Returns the key that is held while the request runs.
async fn key_of(request: impl AsRef<[u8]>, template: &str) -> String {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let address = serve(shop(&locks, template, &gate)).await;
    let mut client = connect_and_send(address, request).await;
    gate.entered(1).await;
    let key = locks.held()[0].key().to_owned();
    gate.let_through(1);
    assert!(answer_with(&mut client, "made!").await.contains(" 201 "));
    key
}

#[tokio::test]
async fn a_path_has_one_key_however_it_is_written_and_no_other_path_has_it() {
    let one_key = [
        "POST /users/1 HTTP/1.1",
        "POST /users/%31 HTTP/1.1",
        "POST /%75sers/1?a=b HTTP/1.1",
        "POST http://shop/users/1 HTTP/1.1",
        "POST http://another-host/users/1 HTTP/1.1",
        "POST /users/1 HTTP/1.0",
    ];
    for line in one_key {
        assert_eq!(
            key_of(order(line), "k:<path>").await,
            "k:/users/1",
            "{line}"
        );
    }
    // Routers treat these as other paths, so the keys differ.
    let mut keys = vec!["k:/users/1".to_owned()];
    for path in [
        "/users/1/",
        "//users/1",
        "/users//1",
        "/./users/1",
        "/a/../users/1",
        "/users%2F1",
        "/users;v=1/1",
        "/Users/1",
        "/users/1%00",
        "/users/1%20",
        "/users/1%FF",
        "/users/1%2531",
        "*",
    ] {
        keys.push(key_of(order(&format!("POST {path} HTTP/1.1")), "k:<path>").await);
    }
    let written = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), written, "{keys:?}");
}

#[tokio::test]
async fn headers_that_are_no_text_or_huge_have_keys_of_their_own() {
    let with = |value: &[u8]| {
        let head = b"POST / HTTP/1.1\r\nhost: shop\r\ncontent-length: 0\r\nx-user-id: ";
        [head, value, b"\r\n\r\n"].concat()
    };
    let huge = vec![b'x'; 100_000];
    let huger = vec![b'x'; 100_001];
    let mut keys = Vec::new();
    for value in [
        &b"\xFF"[..],
        b"\xFE",
        b"\xC3\xBF",
        b"a\tb",
        b"a b",
        b"\"42\"",
        &huge,
        &huger,
    ] {
        let key = key_of(with(value), "k:<header.x-user-id>").await;
        assert!(key.len() <= 1024, "{}", key.len());
        keys.push(key);
    }
    let written = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), written, "{keys:?}");
}

#[tokio::test]
async fn malformed_requests_never_reach_the_layer() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    gate.let_through(9);
    let address = serve(shop(&locks, "k:<header.x-user-id>", &gate)).await;
    for request in [
        "POST / HTTP/1.1\r\nhost: shop\r\nx-user-id: a\0b\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\nhost: shop\r\nx-user-id : 42\r\n\r\n".to_owned(),
        format!(
            "POST / HTTP/1.1\r\nx-user-id: {}\r\n\r\n",
            "x".repeat(1_000_000)
        ),
        "POST / HTTP/1.1\r\nx-user-id: 42\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"
            .to_owned(),
    ] {
        let mut client = TcpStream::connect(address).await.unwrap();
        // The server may close the connection before it has read a refused request to its end.
        let _ = client.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer}"
        );
    }
    assert_eq!((gate.entered_so_far(), store.taken()), (0, 0));
}

/// Methods are case-sensitive: `post` is not POST, and the layer does not lock it.
/// A router distinguishes them, but a handler for any method serves both.
#[tokio::test]
async fn a_method_that_is_not_named_is_not_locked() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    gate.let_through(9);
    let layer = LockLayer::template(locks.clone(), "k:<header.x-user-id>").unwrap();
    let layer = layer.cooldown(HOUR);
    let create = |gate: &Gate| {
        let gate = gate.clone();
        move || async move {
            gate.pass().await;
            (StatusCode::CREATED, "made!")
        }
    };
    let app = Router::new()
        .route("/post", post(create(&gate)))
        .route("/any", any(create(&gate)))
        .layer(layer);
    let address = serve(app).await;
    for (line, status) in [
        ("post /post", "405"),
        ("PosT /post", "405"),
        ("post /any", "201"),
        ("POST /post", "201"),
        ("POST /any", "409"),
        ("post /any", "201"),
        ("PURGE /any", "201"),
    ] {
        let mut client = connect_and_send(address, order(&format!("{line} HTTP/1.1"))).await;
        let answer = answer_with(&mut client, "\r\n\r\n").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{line}: {answer}"
        );
    }
    assert_eq!((gate.entered_so_far(), store.taken()), (4, 1));
}

/// A server answers the requests of one connection in order. The second click of a pipeline
/// starts when the first has ended, and the cooldown refuses it.
#[tokio::test]
async fn two_clicks_in_one_pipeline_are_one_order_and_two_answers() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    gate.let_through(2);
    let at_gate = gate.clone();
    let layer = per_user_and_route(&locks).cooldown(HOUR);
    let create = move || async move {
        at_gate.pass().await;
        (StatusCode::CREATED, "made!")
    };
    let address = serve(
        Router::new()
            .route("/orders", post(create))
            .route_layer(layer),
    )
    .await;
    let click = order("POST /orders HTTP/1.1");
    let mut client = connect_and_send(address, click.repeat(2)).await;
    let answers = answer_with(&mut client, "}").await;
    assert!(
        answers.starts_with("HTTP/1.1 201") && answers.contains("made!HTTP/1.1 409"),
        "{answers}"
    );
    assert!(answers.contains("lock_cooling_down"), "{answers}");
    assert_eq!(gate.entered_so_far(), 1);
}

#[tokio::test]
async fn a_client_of_http_1_0_is_answered_and_its_connection_closed() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let address = serve(shop(&locks, "k:<header.x-user-id>", &gate)).await;
    let mut first = connect_and_send(address, order("POST / HTTP/1.0")).await;
    gate.entered(1).await;
    let mut second = connect_and_send(address, order("POST / HTTP/1.0")).await;
    let mut refused = String::new();
    second.read_to_string(&mut refused).await.unwrap();
    assert!(
        refused.starts_with("HTTP/1.0 409") && refused.ends_with('}'),
        "{refused}"
    );
    gate.let_through(1);
    let mut made = String::new();
    first.read_to_string(&mut made).await.unwrap();
    assert!(
        made.starts_with("HTTP/1.0 201") && made.ends_with("made!"),
        "{made}"
    );
}

/// The handshake is a locked request like any other. The upgraded connection has no lock.
#[tokio::test]
async fn a_connection_is_upgraded_through_the_layer() {
    let (locks, store) = embedded();
    let layer = LockLayer::template(locks.clone(), "chat:<header.x-user-id>").unwrap();
    let layer = layer.methods([Method::GET, Method::CONNECT]).cooldown(HOUR);
    let upgrade = |mut request: Request<axum::body::Body>| async move {
        let upgraded = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut socket = TokioIo::new(upgraded.await.expect("it is upgraded"));
            socket.write_all(b"hello!").await.expect("it listens");
        });
        (
            StatusCode::SWITCHING_PROTOCOLS,
            [(header::CONNECTION, "upgrade"), (header::UPGRADE, "chat")],
        )
    };
    let address = serve(Router::new().route("/", any(upgrade)).layer(layer)).await;
    let request = "GET / HTTP/1.1\r\nhost: shop\r\nx-user-id: 42\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n";
    for _ in 0..2 {
        let mut client = connect_and_send(address, request).await;
        let answer = answer_with(&mut client, "hello!").await;
        assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
        assert_eq!(
            store.taken(),
            0,
            "released, and 101 is no success to cool down after"
        );
    }
}

//! Keys from bodies on real sockets (feature `axum`): clients that misbehave while their body is read,
//! and the routes and addresses that the layer sees.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::*;
use crate::on_sockets::{self, answer_until, connect_and_send};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use http::StatusCode;
use lock_core::LockManager;
use lock_tower::key::WithBody;
use lock_tower::{KeyTemplate, LockLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tower::{ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

fn form(locks: &LockManager) -> LockLayer<WithBody> {
    let template = "form:<param.shop>:<header.x-user-id>:<form.token>";
    LockLayer::body_template(locks.clone(), template, 20).unwrap()
}

/// Responds with the body. Reports requests that its server has dropped.
async fn serve(
    layer: LockLayer<WithBody>,
    gate: &Gate,
) -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let gate = gate.clone();
    let create = move |body: Bytes| async move {
        gate.pass().await;
        (
            StatusCode::CREATED,
            format!("made of {}!", String::from_utf8_lossy(&body)),
        )
    };
    let orders = Router::new().route("/orders", post(create)).layer(layer);
    let app = Router::new().nest("/{shop}", orders);
    let (sender, dropped) = mpsc::unbounded_channel();
    let outer = service_fn(move |request: http::Request<axum::body::Body>| {
        let (app, dropped) = (app.clone(), OnDrop(sender.clone()));
        async move {
            let response = app.oneshot(request).await;
            drop(dropped);
            response
        }
    });
    let address = on_sockets::serve(Router::new().fallback_service(outer)).await;
    (address, dropped)
}

struct OnDrop(mpsc::UnboundedSender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

fn head(rest: &str) -> String {
    format!("POST /a/orders HTTP/1.1\r\nhost: shop\r\nx-user-id: 42\r\n{rest}\r\n\r\n")
}

#[tokio::test]
async fn a_body_of_a_length_and_one_in_chunks_are_the_same() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let (address, _dropped) = serve(form(&locks), &gate).await;
    let by_length = head("content-length: 9") + "token=a:b";
    let in_chunks =
        head("transfer-encoding: chunked") + "6\r\ntoken=\r\n5\r\na%3Ab\r\n0\r\nx: 1\r\n\r\n";

    let mut first = connect_and_send(address, &by_length).await;
    gate.entered(1).await;
    assert_eq!(locks.held()[0].key(), "form:a:42:a%3Ab");
    let mut second = connect_and_send(address, &in_chunks).await;
    let refused = answer_until(&mut second, "}").await;
    assert!(refused.starts_with("HTTP/1.1 409"), "{refused}");
    gate.let_through(2);
    let made = answer_until(&mut first, "!").await;
    assert!(
        made.starts_with("HTTP/1.1 201") && made.ends_with("made of token=a:b!"),
        "{made}"
    );
    // The connection of the refused request stays usable, because its body was read to the end.
    second.write_all(in_chunks.as_bytes()).await.unwrap();
    let made = answer_until(&mut second, "!").await;
    assert!(made.ends_with("made of token=a%3Ab!"), "{made}");
}

#[tokio::test]
async fn one_byte_over_the_limit_is_a_413_declared_or_not() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let (address, _dropped) = serve(form(&locks), &gate).await;
    for (rest, body) in [
        ("content-length: 21", "token=abcdefghijklmno"),
        ("content-length: 21", ""),
        (
            "transfer-encoding: chunked",
            "15\r\ntoken=abcdefghijklmno\r\n0\r\n\r\n",
        ),
        (
            "transfer-encoding: chunked",
            "14\r\ntoken=abcdefghijklmn\r\n1\r\no\r\n",
        ),
    ] {
        let mut client = connect_and_send(address, &(head(rest) + body)).await;
        let refused = answer_until(&mut client, "}").await;
        assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
        assert!(refused.contains("lock_body_too_large"), "{refused}");
    }
    let exactly = head("content-length: 20") + "token=abcdefghijklmn";
    let mut client = connect_and_send(address, &exactly).await;
    gate.entered(1).await;
    gate.let_through(1);
    assert!(answer_until(&mut client, "!").await.contains(" 201 "));
    assert_eq!((gate.entered_so_far(), store.taken()), (1, 0));
}

#[tokio::test]
async fn a_client_receives_100_continue_only_if_its_body_is_read() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    gate.let_through(1);
    let (address, _dropped) = serve(form(&locks), &gate).await;
    let mut client =
        connect_and_send(address, &head("content-length: 7\r\nexpect: 100-continue")).await;
    assert_eq!(
        answer_until(&mut client, "\r\n\r\n").await,
        "HTTP/1.1 100 Continue\r\n\r\n"
    );
    client.write_all(b"token=1").await.unwrap();
    assert!(
        answer_until(&mut client, "!")
            .await
            .starts_with("HTTP/1.1 201")
    );

    for unwanted in [
        head("content-length: 21\r\nexpect: 100-continue"),
        head("content-length: 7\r\nexpect: 100-continue").replace("x-user-id", "x-nobody"),
    ] {
        let mut client = connect_and_send(address, &unwanted).await;
        let refused = answer_until(&mut client, "}").await;
        assert!(refused.starts_with("HTTP/1.1 4"), "{refused}");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_before_its_body_arrived_runs_no_handler() {
    for chunked in [false, true] {
        let (locks, store) = embedded();
        let gate = Gate::closed();
        let (address, mut dropped) = serve(form(&locks).body_timeout(HOUR), &gate).await;
        let text = match chunked {
            true => head("transfer-encoding: chunked") + "7\r\ntoken=1\r\n",
            false => head("content-length: 8") + "token=1",
        };
        let client = connect_and_send(address, &text).await;
        drop(client);
        dropped.recv().await.expect("the server drops the request");
        all_released(&locks).await;
        assert_eq!((gate.entered_so_far(), store.taken()), (0, 0), "{chunked}");
    }
}

#[tokio::test]
async fn a_body_that_ends_too_early_is_a_400_and_one_that_does_not_come_a_408() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let (address, _dropped) = serve(form(&locks).body_timeout(HOUR), &gate).await;
    let mut client = connect_and_send(
        address,
        &(head("transfer-encoding: chunked") + "7\r\ntoken=1\r\nnonsense\r\n"),
    )
    .await;
    let refused = answer_until(&mut client, "}").await;
    assert!(
        refused.starts_with("HTTP/1.1 400") && refused.contains("lock_body_incomplete"),
        "{refused}"
    );

    let (address, _dropped) =
        serve(form(&locks).body_timeout(Duration::from_millis(1)), &gate).await;
    let mut client = connect_and_send(address, &(head("content-length: 8") + "token=1")).await;
    let refused = answer_until(&mut client, "}").await;
    assert!(
        refused.starts_with("HTTP/1.1 408") && refused.contains("lock_body_timeout"),
        "{refused}"
    );
    // The server does not treat late bytes as the next request.
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!((gate.entered_so_far(), store.taken()), (0, 0));
}

/// Bytes beyond the declared length belong to the next request.
#[tokio::test]
async fn a_length_that_is_too_short_cuts_the_body_for_key_and_handler_alike() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let (address, _dropped) = serve(form(&locks), &gate).await;
    let mut client = connect_and_send(address, &(head("content-length: 7") + "token=123")).await;
    gate.entered(1).await;
    assert_eq!(locks.held()[0].key(), "form:a:42:1");
    gate.let_through(1);
    let made = answer_until(&mut client, "!").await;
    assert!(made.ends_with("made of token=1!"), "{made}");
}

#[tokio::test]
async fn parameters_and_the_peer_are_known_on_a_server() {
    #[derive(Clone)]
    struct Tenant(&'static str);

    let (locks, _) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let template = KeyTemplate::new("k:<ext.tenant>:<param.shop>:<param.id>:<peer>:<route>")
        .extension("tenant", |tenant: &Tenant| tenant.0);
    let layer = LockLayer::template(locks.clone(), template).unwrap();
    let orders = Router::new()
        .route(
            "/orders/{id}",
            post(move || async move { at_gate.pass().await }),
        )
        .route_layer(layer)
        .layer(axum::Extension(Tenant("t:1")));
    let app = Router::new().nest("/{shop}", orders);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });

    let order = "POST /a%2Fb/orders/%31 HTTP/1.1\r\nhost: shop\r\ncontent-length: 0\r\n\r\n";
    let mut first = connect_and_send(address, order).await;
    gate.entered(1).await;
    let key = "k:t%3A1:a/b:1:127.0.0.1:/%7Bshop%7D/orders/%7Bid%7D";
    assert_eq!(locks.held()[0].key(), key);
    let mut again = connect_and_send(address, &order.replace("%31", "1")).await;
    let refused = answer_until(&mut again, "}").await;
    assert!(refused.starts_with("HTTP/1.1 409"), "{refused}");
    gate.let_through(1);
    assert!(
        answer_until(&mut first, "\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 200")
    );
}

//! Hosts, and identities that consist of blanks, over HTTP/1 and HTTP/2 (feature `axum`).

use crate::http2;
use crate::on_sockets::{connect_and_send, read_until, serve};
use axum::Router;
use axum::extract::State;
use axum::routing::any;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use lock_core::LockManager;
use lock_tower::LockLayer;

/// Makes a service that responds with the key under which it runs.
fn keys(template: &str) -> Router {
    let locks = LockManager::in_memory();
    let layer = LockLayer::template(locks.clone(), template).unwrap();
    let layer = layer.methods([Method::GET, Method::POST]);
    let key = async |State(locks): State<LockManager>| {
        let held = locks.held();
        held.first()
            .map_or("no lock".to_owned(), |lock| format!("key {};", lock.key()))
    };
    Router::new()
        .fallback(any(key))
        .layer(layer)
        .with_state(locks)
}

/// Returns the key, or the code of the refusal.
fn told(answer: &str) -> String {
    let code = answer.split_once(r#""code":""#).map(|(_, code)| code);
    let key = answer.split_once("key k:").map(|(_, key)| key);
    let end = |text: &str| text.split(['"', ';']).next().unwrap_or_default().to_owned();
    code.or(key).map_or_else(|| answer.to_owned(), end)
}

async fn over_http1(template: &str, head: &str) -> String {
    let address = serve(keys(template)).await;
    let request = format!("{head}content-length: 0\r\nconnection: close\r\n\r\n");
    let mut client = connect_and_send(address, request).await;
    told(&read_until(&mut client, |text| text.contains(';') || text.contains("}")).await)
}

async fn over_http2(template: &str, uri: &str, headers: &[(&str, &str)]) -> String {
    let mut client = http2::connect::<Empty<Bytes>>(keys(template)).await;
    let request = headers
        .iter()
        .fold(Request::post(uri), |request, (name, value)| {
            request.header(*name, *value)
        });
    let response = client
        .send_request(request.body(Empty::new()).unwrap())
        .await
        .unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    told(str::from_utf8(&body).unwrap())
}

#[tokio::test]
async fn a_host_is_the_same_over_http1_and_http2_and_in_every_form_of_the_target() {
    let template = "k:<host>";
    for head in [
        "POST / HTTP/1.1\r\nhost: Shop.example:3000\r\n",
        "POST / HTTP/1.1\r\nhost: shop.example.\r\n",
        "POST http://shop.example/ HTTP/1.1\r\nhost: shop.example\r\n",
        "POST http://shop.EXAMPLE:80/ HTTP/1.1\r\nhost: shop.example\r\n",
        "POST http://shop.example/ HTTP/1.0\r\n",
    ] {
        assert_eq!(over_http1(template, head).await, "shop.example", "{head}");
    }
    for (uri, headers) in [
        ("http://shop.example/", &[][..]),
        ("http://SHOP.example:3000/", &[]),
        ("http://shop.example/", &[("host", "shop.example")]),
    ] {
        assert_eq!(
            over_http2(template, uri, headers).await,
            "shop.example",
            "{uri}"
        );
    }
    let address = over_http1(template, "POST / HTTP/1.1\r\nhost: [2001:DB8::1]:80\r\n").await;
    assert_eq!(address, "2001%3Adb8%3A%3A1");
    assert_eq!(
        over_http2(template, "http://[2001:db8:0::1]/", &[]).await,
        address
    );
}

#[tokio::test]
async fn a_request_that_is_for_two_hosts_or_for_none_has_no_key() {
    let template = "k:<host>";
    for (head, code) in [
        (
            "POST http://a.example/ HTTP/1.1\r\nhost: b.example\r\n",
            "lock_key_ambiguous",
        ),
        (
            "POST / HTTP/1.1\r\nhost: a.example\r\nhost: b.example\r\n",
            "lock_key_ambiguous",
        ),
        ("POST / HTTP/1.1\r\nhost: \r\n", "lock_key_missing"),
        ("POST / HTTP/1.0\r\n", "lock_key_missing"),
        (
            "POST / HTTP/1.1\r\nhost: a@shop.example\r\n",
            "lock_key_invalid",
        ),
        (
            "POST / HTTP/1.1\r\nhost: sh%6Fp.example\r\n",
            "lock_key_invalid",
        ),
    ] {
        assert_eq!(over_http1(template, head).await, code, "{head}");
    }
    let two = [("host", "b.example")];
    let refused = over_http2(template, "http://a.example/", &two).await;
    assert_eq!(refused, "lock_key_ambiguous");
    // Many clients use one host, so a host alone makes no key.
    let anonymous = over_http2("k:<host>:<header.x-user-id?>", "http://a.example/", &[]).await;
    assert_eq!(anonymous, "lock_key_missing");
}

#[tokio::test]
async fn blanks_identify_no_client_over_http2_and_change_no_key() {
    let template = "k:<header.x-user-id>";
    let key = async |value| over_http2(template, "http://a/", &[("x-user-id", value)]).await;
    for blank in ["", " ", "\t ", "          "] {
        assert_eq!(key(blank).await, "lock_key_missing", "{blank:?}");
    }
    for same in ["42", " 42", "42\t"] {
        assert_eq!(key(same).await, "42", "{same:?}");
    }
}

#[tokio::test]
async fn a_head_runs_under_the_key_of_get_and_its_refusal_has_no_body() {
    let template = "k:<header.x-user-id?>:<method>:<host>";
    let get = "GET / HTTP/1.1\r\nhost: shop\r\nx-user-id: 1\r\n";
    assert_eq!(over_http1(template, get).await, "1:GET:shop");
    let head = "HEAD / HTTP/1.1\r\nhost: shop\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let mut client = connect_and_send(serve(keys(template)).await, head).await;
    let answer = read_until(&mut client, |text| text.contains("\r\n\r\n")).await;
    assert!(
        answer.contains(" 400 ") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
    let mut client = http2::connect::<Empty<Bytes>>(keys(template)).await;
    let request = Request::head("http://shop/").body(Empty::new()).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.status(), 400);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.is_empty(), "{body:?}");
}

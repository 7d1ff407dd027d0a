//! Tests which requests exclude each other.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{RedisServer, http, http2, needs, wait};
use lock_tower::{LockLayer, MissingKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::VERSIONS;
use super::{Gate, Server, layer, nothing_is_left, server_on};
use crate::shop::code;

#[tokio::test]
async fn only_one_of_two_clicks_runs_and_another_user_or_route_runs_too() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let (here, there) = (
            server_on(&redis, &gate).await,
            server_on(&redis, &gate).await,
        );
        let user = [("x-user-id", "42")];
        let others = async {
            gate.entered(1).await;
            for server in [&here, &there] {
                let second = version.post(server, &user).await;
                assert_eq!((second.status, &*code(&second)), (409, "lock_busy"));
            }
            let let_them = async {
                gate.entered(3).await;
                gate.let_through(3);
            };
            let another_route = version.request(&there, "POST", "/returns", &user, "");
            let other = [("x-user-id", "43")];
            let another_user = version.post(&here, &other);
            let (route, user, ()) = tokio::join!(another_route, another_user, let_them);
            assert_eq!((route.status, user.status), (201, 201), "{version:?}");
        };
        let (first, ()) = tokio::join!(version.post(&here, &user), others);
        assert_eq!(first.status, 201);
        nothing_is_left(&redis, &[&here, &there]).await;
    }
}

async fn by_tenant(redis: &RedisServer, gate: &Gate) -> Server {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let key = "submit:<header.x-tenant>:<header.x-user-id>";
    let layer = LockLayer::template(locks.clone(), key).expect("a template");
    let layer = layer.acquire_timeout(wait::PATIENCE);
    Server::start(locks, layer, gate).await
}

#[tokio::test]
async fn the_user_of_another_tenant_runs_and_values_with_the_separator_do_not_collide() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let (here, there) = (
            by_tenant(&redis, &gate).await,
            by_tenant(&redis, &gate).await,
        );
        let tenants = [("a", "b:c"), ("a:b", "c"), ("b", "b:c"), ("a%3Ab", "c")];
        let [one, two, three, four] =
            tenants.map(|(tenant, user)| [("x-tenant", tenant), ("x-user-id", user)]);
        let all = async {
            gate.entered(4).await;
            assert_eq!(version.post(&there, &one).await.status, 409);
            gate.let_through(4);
        };
        let (one, two, three, four, ()) = tokio::join!(
            version.post(&here, &one),
            version.post(&there, &two),
            version.post(&here, &three),
            version.post(&there, &four),
            all
        );
        let statuses = [one, two, three, four].map(|answer| answer.status);
        assert_eq!(statuses, [201; 4], "{version:?}");
        nothing_is_left(&redis, &[&here, &there]).await;
    }
}

#[tokio::test]
async fn two_requests_without_a_key_are_both_refused_or_run_both() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let refusing = server_on(&redis, &Gate::open()).await;
        for _ in 0..2 {
            let refused = version.post(&refusing, &[]).await;
            assert_eq!(
                (refused.status, &*code(&refused)),
                (400, "lock_key_missing")
            );
        }
        let gate = Gate::closed();
        let locks = LockManager::connect(&redis.url()).await.expect("a manager");
        let layer = layer(&locks).on_missing_key(MissingKey::Pass);
        let passing = Server::start(locks, layer, &gate).await;
        let both = async {
            assert!(
                gate.entered_anyhow(2).await.is_none(),
                "the handler runs without a lock"
            );
            gate.let_through(2);
        };
        let (first, second, ()) = tokio::join!(
            version.post(&passing, &[]),
            version.post(&passing, &[]),
            both
        );
        assert_eq!((first.status, second.status), (201, 201), "{version:?}");
        nothing_is_left(&redis, &[&refusing, &passing]).await;
    }
}

/// Starts a service whose handler answers with the body that it has read.
async fn by_body(redis: &RedisServer, gate: &Gate, limit: usize) -> Server {
    by_body_within(redis, gate, limit, Duration::from_secs(10)).await
}

async fn by_body_within(
    redis: &RedisServer,
    gate: &Gate,
    limit: usize,
    patience: Duration,
) -> Server {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let key = "pay:<header.x-user-id>:<json>";
    let layer = LockLayer::body_template(locks.clone(), key, limit)
        .expect("a template")
        .acquire_timeout(wait::PATIENCE)
        .body_timeout(patience);
    let gate = gate.clone();
    let pay = move |body: String| async move {
        gate.pass(None).await;
        body
    };
    let app = Router::new().route("/pay", post(pay)).route_layer(layer);
    Server::serve(locks, app).await
}

#[tokio::test]
async fn the_same_json_in_another_order_is_a_duplicate_and_the_handler_reads_the_sent_bytes() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let body = "{\"sku\": \"mug\",\r\n \"quantity\": 1}";
        let one_more = format!("{body} ");
        let (here, there) = (
            by_body(&redis, &gate, body.len()).await,
            by_body(&redis, &gate, body.len()).await,
        );
        let headers = [("x-user-id", "42"), ("content-type", "application/json")];
        let pay = |server, body| version.request(server, "POST", "/pay", &headers, body);
        let others = async {
            gate.entered_anyhow(1).await;
            let second = pay(&there, r#"{"quantity":1,"sku":"mug"}"#).await;
            assert_eq!((second.status, &*code(&second)), (409, "lock_busy"));
            // This body is one byte longer than the limit; the other one has exactly the
            // limit.
            let longer = pay(&there, &one_more).await;
            assert_eq!(longer.status, 413, "{longer:?}");
            gate.let_through(1);
        };
        let (first, ()) = tokio::join!(pay(&here, body), others);
        assert_eq!((first.status, &*first.body), (200, body), "{version:?}");
        assert_eq!(gate.counts(), (1, 1));
        nothing_is_left(&redis, &[&here, &there]).await;
    }
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_a_408_and_locks_nothing() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let patience = Duration::from_millis(50);
    let server = by_body_within(&redis, &gate, 1024, patience).await;
    let headers = [("x-user-id", "42"), ("content-type", "application/json")];

    let text = http::encode(server.port(), "POST", "/pay", &headers, &" ".repeat(100));
    let head = &text[..text.len() - 100];
    let address = ("127.0.0.1", server.port());
    let mut stream = TcpStream::connect(address)
        .await
        .expect("the server listens");
    let begun = format!("{head}{{");
    stream
        .write_all(begun.as_bytes())
        .await
        .expect("the server reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("the server answers and closes");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

    let connection = http2::Connection::open(server.port()).await;
    let connection = connection.expect("the server listens");
    let begun = connection
        .begin("POST", "/pay", &headers, http2::Body::ToCome)
        .await;
    let mut stream = begun.expect("the server reads");
    stream.send("{", false).expect("the server reads");
    let answer = stream.answer().await.expect("the server answers");
    assert_eq!(answer.whole().await.expect("a body").status, 408);

    assert_eq!(gate.counts().0, 0, "no handler has run");
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn a_client_cannot_choose_its_address_behind_a_proxy() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let key = lock_tower::key::x_forwarded_for(1);
    let layer = LockLayer::extractor(locks.clone(), key);
    let server = Server::start(locks, layer, &gate).await;
    let [http1, http2] = VERSIONS;
    let others = async {
        gate.entered(1).await;
        // The client has written all entries before the proxy's own entry.
        for spoofed in ["10.0.0.9, 203.0.113.7", "203.0.113.8, 203.0.113.7"] {
            for version in VERSIONS {
                let second = version.post(&server, &[("x-forwarded-for", spoofed)]).await;
                assert_eq!(second.status, 409, "{spoofed}");
            }
        }
        let another = [("x-forwarded-for", "203.0.113.7, 203.0.113.8")];
        let let_them = async {
            gate.entered(2).await;
            gate.let_through(2);
        };
        let (another, ()) = tokio::join!(http2.post(&server, &another), let_them);
        assert_eq!(another.status, 201);
    };
    let (first, ()) = tokio::join!(
        http1.post(&server, &[("x-forwarded-for", "203.0.113.7")]),
        others
    );
    assert_eq!(first.status, 201);
}

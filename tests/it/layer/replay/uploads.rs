//! Tests repeated uploads, which must not be answered while the client still sends, and the size of a record.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{RedisServer, needs};
use lock_tower::{Fingerprint, Replay};

use super::{assert_first, assert_replay, name, pay, replaying};
use crate::layer::Server;

/// Starts a server that reads all of an upload, however large it is.
async fn uploads(locks: LockManager, fingerprint: Fingerprint) -> Server {
    let replay = Replay::default().fingerprint(fingerprint);
    let layer = replaying(&locks, replay);
    let store = async |body: Body| {
        let all = to_bytes(body, usize::MAX).await;
        all.expect("the client sends all of it");
        (StatusCode::CREATED, "stored")
    };
    let app = Router::new()
        .route("/payments", post(store))
        .route_layer(layer);
    Server::serve(locks, app).await
}

/// Over HTTP/1.1 a server that answers without the body closes the connection, and the client sees a broken pipe.
#[tokio::test]
async fn a_large_upload_that_is_repeated_is_answered_behind_its_last_byte() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = crate::steps::manager(&redis.url()).await;
    let upload = "x".repeat(20 << 20);
    let server = uploads(locks.clone(), Fingerprint::Head).await;
    assert_first(&pay(server.port(), "k1", &upload).await, "stored");
    assert_replay(&pay(server.port(), "k1", &upload).await, "stored");

    // Another upload is refused at its first byte.
    let server = uploads(locks, Fingerprint::Request).await;
    assert_first(&pay(server.port(), "k2", "small").await, "stored");
    let refused = pay(server.port(), "k2", &upload).await;
    assert_eq!(refused.status, 422, "{refused:?}");
}

#[tokio::test]
async fn the_record_of_a_small_answer_takes_as_much_memory_as_the_page_says() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = crate::steps::manager(&redis.url()).await;
    let json = format!("\"{}\"", "x".repeat(298));
    let answer = move || async move { ([(CONTENT_TYPE, "application/json")], json) };
    let app = Router::new()
        .route("/payments", post(answer))
        .route_layer(replaying(&locks, Replay::default()));
    let server = Server::serve(locks, app).await;
    let key = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    assert_eq!(pay(server.port(), key, "{}").await.status, 200);
    let count = |command: &[&str]| redis.cli(command).parse::<usize>().expect("a number");
    let name = name(key);
    let value = count(&["STRLEN", &name]);
    assert!((430..=460).contains(&value), "{value} bytes");
    let all = count(&["MEMORY", "USAGE", &name]);
    // Valkey needs a fifth less than Redis.
    assert!((500..=800).contains(&all), "{all} bytes");
}

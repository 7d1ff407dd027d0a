//! Tests servers that are separate processes, and are frozen or killed between effect and record.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{ChildProcess, RedisServer, http, needs};
use lock_tower::{LockContext, Replay};

use super::{assert_replay, name, pay, replaying};
use crate::layer::Server;
use crate::layer::processes::says;

const SERVER: &str = "LOCK_TESTS_REPLAY_SERVER";

/// Makes a service that writes a row under the number of its operation, and then works until its lock
/// is lost if `hangs`.
async fn service(redis: &str, hangs: bool, answer: &'static str) -> (LockManager, Router) {
    let locks = crate::steps::manager(redis).await;
    let layer = replaying(&locks, Replay::default()).ttl(Duration::from_secs(1));
    let client = lock_core::redis1::Client::open(redis).expect("a URL");
    let rows = client.get_multiplexed_async_connection().await;
    let rows = rows.expect("a connection");
    let pay = move |lock: LockContext| async move {
        // The table has a unique column.
        let row = format!("row:{}", lock.operation_id().expect("a key"));
        let insert = lock_core::redis1::cmd("SETNX")
            .arg(row)
            .arg(answer)
            .to_owned();
        let inserted: i64 = insert
            .query_async(&mut rows.clone())
            .await
            .expect("a table");
        println!("\ninserted {inserted}");
        if hangs {
            lock.lost().await;
            println!("\nlost");
        }
        (StatusCode::CREATED, answer)
    };
    let app = Router::new()
        .route("/payments", post(pay))
        .route_layer(layer);
    (locks, app)
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn serves_and_hangs_behind_its_effect() {
    let Ok(url) = std::env::var(SERVER) else {
        return;
    };
    let (locks, app) = service(&url, true, "of the first").await;
    let server = Server::serve(locks, app).await;
    println!("\nserving {}", server.port());
    std::future::pending::<()>().await;
}

fn first(redis: &RedisServer) -> (ChildProcess, u16) {
    let test = "layer::replay::processes::serves_and_hangs_behind_its_effect";
    let process = ChildProcess::of_test(test, &[(SERVER, &redis.url())]);
    let port = process.tells("serving ").parse().expect("a port");
    (process, port)
}

fn rows(redis: &RedisServer) -> Vec<String> {
    let mut keys = redis.keys();
    keys.retain(|key| key.starts_with("row:"));
    keys
}

/// Sends the payment until no other process holds its lock.
async fn pay_when_free(port: u16) -> http::Response {
    loop {
        let answer = pay(port, "k1", "").await;
        if answer.status != 409 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn after_a_crash_between_effect_and_record_the_retry_runs_and_finds_the_row_of_its_operation()
{
    needs!(redis);
    let redis = RedisServer::start();
    let (mut killed, port) = first(&redis);
    let lost = tokio::spawn(async move { http::post(port, "/payments", &headers(), "").await });
    says(&killed, "inserted 1").await;
    let row = rows(&redis);
    assert_eq!(row.len(), 1);
    killed.kill();
    lost.await.expect("no panic").expect_err("no answer");

    let (locks, app) = service(&redis.url(), false, "of the second").await;
    let server = Server::serve(locks, app).await;
    let answer = pay_when_free(server.port()).await;
    assert_eq!((answer.status, &*answer.body), (201, "of the second"));
    assert_eq!(rows(&redis), row, "one row, of the first run");
    assert_eq!(redis.get(&row[0]).as_deref(), Some("of the first"));
    assert_replay(&pay(server.port(), "k1", "").await, "of the second");
}

#[tokio::test]
async fn a_process_that_was_frozen_beyond_its_ttl_changes_nothing_in_the_answer_of_the_next_one() {
    needs!(redis);
    let redis = RedisServer::start();
    let (frozen, port) = first(&redis);
    let late = tokio::spawn(async move { http::post(port, "/payments", &headers(), "").await });
    says(&frozen, "inserted 1").await;
    frozen.stop();
    let (locks, app) = service(&redis.url(), false, "of the second").await;
    let server = Server::serve(locks, app).await;
    let answer = pay_when_free(server.port()).await;
    assert_eq!((answer.status, &*answer.body), (201, "of the second"));
    let record = redis.get(&name("k1"));
    frozen.cont();
    says(&frozen, "lost").await;
    let late = late.await.expect("no panic").expect("its handler goes on");
    assert_eq!((late.status, &*late.body), (201, "of the first"));
    assert_eq!(redis.get(&name("k1")), record);
    assert_replay(&pay(server.port(), "k1", "").await, "of the second");
    assert_replay(&pay(port, "k1", "").await, "of the second");
}

fn headers() -> [(&'static str, &'static str); 2] {
    [("x-user-id", "secret-user"), ("idempotency-key", "k1")]
}

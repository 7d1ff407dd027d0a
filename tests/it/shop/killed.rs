//! Tests charges whose process is killed before it has answered.

use lock_tests::http::{self, Response};
use lock_tests::{RedisServer, ShopProcess, needs, wait};
use tokio::time::timeout;

use super::pair::{self, ports};
use super::{code, ends_well, view};

const EURO: &str = r#"{"cents":100}"#;

/// The two ways to keep an answer, by the first part of their paths.
const IN_REDIS: &str = "redis";
const IN_THE_COMMIT: &str = "once";

/// Charges a euro under the key `one`. An error is a connection that has ended without an answer.
async fn charge(port: u16, way: &str, user: &str) -> std::io::Result<Response> {
    let headers = [("x-user-id", user), ("idempotency-key", "one")];
    send(port, way, &headers).await
}

/// Sends the same request, and has the process killed between the charge and the answer.
async fn charge_and_be_killed(port: u16, way: &str, user: &str) {
    let headers = [
        ("x-user-id", user),
        ("idempotency-key", "one"),
        ("x-kill-process", "1"),
    ];
    let answer = send(port, way, &headers).await;
    answer.expect_err("a killed process has not answered");
}

async fn send(port: u16, way: &str, headers: &[(&str, &str)]) -> std::io::Result<Response> {
    let path = format!("/{way}/charges");
    let answer = http::post(port, &path, headers, EURO);
    let answer = timeout(wait::PATIENCE, answer).await;
    answer.unwrap_or_else(|_| panic!("no answer on {port}"))
}

/// Returns the numbers of a customer's charges, oldest first.
async fn charges(port: u16, user: &str) -> Vec<i64> {
    let mut charges = view(port, "/charges").await;
    charges.retain(|charge| charge["user"] == user);
    let number = |charge: &serde_json::Value| charge["charge"].as_i64().expect("a number");
    charges.iter().rev().map(number).collect()
}

async fn is_back(port: u16) {
    wait::eventually("the killed process is back", async || {
        http::get(port, "/readyz")
            .await
            .is_ok_and(|answer| answer.status == 200)
    })
    .await;
}

#[tokio::test]
async fn with_the_answer_in_redis_a_killed_process_leaves_a_charge_and_the_next_takes_another() {
    needs!(redis);
    let server = RedisServer::start();
    let pair = pair::on(&server);
    let [first, second] = ports(&pair);
    charge_and_be_killed(first, IN_REDIS, "ada").await;
    assert_eq!(charges(second, "ada").await, [1], "no answer, but a charge");
    let again = charge(second, IN_REDIS, "ada").await.expect("an answer");
    assert_eq!(again.status, 201, "{again:?}");
    assert!(!again.headers.contains_key("idempotency-replayed"));
    assert_eq!(charges(second, "ada").await, [1, 2]);
}

#[tokio::test]
async fn with_charge_and_answer_in_one_commit_a_killed_process_leaves_nothing_and_the_next_charges_once()
 {
    needs!(redis);
    let server = RedisServer::start();
    let pair = pair::on(&server);
    let [first, second] = ports(&pair);
    charge_and_be_killed(first, IN_THE_COMMIT, "ada").await;
    assert!(charges(second, "ada").await.is_empty());
    let again = charge(second, IN_THE_COMMIT, "ada").await;
    assert_eq!(again.expect("an answer").status, 201);
    assert_eq!(charges(second, "ada").await, [1]);
    // The process that is back has the answer, too.
    is_back(first).await;
    let replayed = charge(first, IN_THE_COMMIT, "ada").await;
    let replayed = replayed.expect("an answer");
    assert_eq!(replayed.headers["idempotency-replayed"], "true");
    assert_eq!(charges(first, "ada").await, [1]);
}

#[tokio::test]
async fn a_killed_process_comes_back_on_its_port_and_can_be_killed_again() {
    needs!(redis);
    let server = RedisServer::start();
    let mut pair = pair::on(&server);
    let ports = ports(&pair);
    for (victim, user) in [(0, "ada"), (1, "ben"), (0, "cleo"), (0, "dan")] {
        charge_and_be_killed(ports[victim], IN_THE_COMMIT, user).await;
        let other = ports[1 - victim];
        let again = charge(other, IN_THE_COMMIT, user).await;
        assert_eq!(again.expect("an answer").status, 201);
        is_back(ports[victim]).await;
        for port in ports {
            assert_eq!(charges(port, user).await.len(), 1);
        }
    }
    pair.process().terminate();
    ends_well(&mut pair);
}

#[tokio::test]
async fn a_pair_that_is_asked_to_end_while_a_process_is_away_ends_in_order() {
    needs!(redis);
    let server = RedisServer::start();
    let mut pair = pair::on(&server);
    let [first, second] = ports(&pair);
    charge_and_be_killed(first, IN_REDIS, "ada").await;
    pair.process().terminate();
    ends_well(&mut pair);
    for port in [first, second] {
        http::get(port, "/readyz")
            .await
            .expect_err("both have ended");
    }
}

#[tokio::test]
async fn a_charge_that_is_sent_again_gets_the_first_answer_in_both_ways() {
    let shop = ShopProcess::start();
    for (way, user) in [(IN_REDIS, "ada"), (IN_THE_COMMIT, "ben")] {
        let first = charge(shop.port(), way, user).await.expect("an answer");
        let again = charge(shop.port(), way, user).await.expect("an answer");
        assert_eq!((first.status, again.status), (201, 201), "{again:?}");
        assert_eq!(first.body, again.body);
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_eq!(charges(shop.port(), user).await.len(), 1);
    }
}

#[tokio::test]
async fn a_shop_without_a_twin_refuses_to_be_killed_and_goes_on() {
    let shop = ShopProcess::start();
    let headers = [
        ("x-user-id", "ada"),
        ("idempotency-key", "one"),
        ("x-kill-process", "1"),
    ];
    for way in [IN_REDIS, IN_THE_COMMIT] {
        let refused = send(shop.port(), way, &headers).await.expect("an answer");
        assert_eq!((refused.status, &*code(&refused)), (409, "no_pair"));
        // An error is not remembered.
        let charged = charge(shop.port(), way, "ada").await.expect("an answer");
        assert_eq!(charged.status, 201, "{charged:?}");
    }
}

#[tokio::test]
async fn a_charge_of_nothing_is_refused() {
    let shop = ShopProcess::start();
    for body in [r#"{"cents":0}"#, r#"{"cents":-1}"#, "{}", "one euro"] {
        let headers = [("x-user-id", "ada"), ("idempotency-key", "one")];
        for way in [IN_REDIS, IN_THE_COMMIT] {
            let path = format!("/{way}/charges");
            let refused = http::post(shop.port(), &path, &headers, body).await;
            let refused = refused.expect("an answer");
            assert!([400, 422].contains(&refused.status), "{refused:?}");
            assert_eq!(code(&refused), "malformed_request");
        }
    }
    assert!(charges(shop.port(), "ada").await.is_empty());
}

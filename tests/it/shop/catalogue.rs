//! Tests the catalogue: readers beside readers, and a writer alone.

use lock_tests::http::{self, Response};
use lock_tests::{RedisServer, ShopProcess, needs, wait};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{buy_fast, code, opened, view};

/// The lamp costs this much more than the mug, before and after each change of a test.
const APART: i64 = 4_600;

async fn send(port: u16, method: &str, body: &str) -> Response {
    let headers = [("content-type", "application/json")];
    let answer = http::request(port, method, "/catalogue", &headers, body);
    let answer = timeout(wait::PATIENCE, answer).await;
    answer.expect("in time").expect("an answer")
}

/// Returns the price of the mug, after a check that the price of the lamp belongs to it.
async fn read(port: u16) -> i64 {
    let answer = send(port, "GET", "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let prices: Value = serde_json::from_str(&answer.body).expect("JSON");
    let cents = |sku: &str| prices[sku].as_i64().expect("a price");
    assert_eq!(
        cents("lamp") - cents("mug"),
        APART,
        "half of a change: {prices}"
    );
    cents("mug")
}

async fn write(port: u16, mug: i64) -> Response {
    let lamp = mug + APART;
    send(port, "PUT", &format!(r#"{{"mug":{mug},"lamp":{lamp}}}"#)).await
}

/// Returns the number of shares or locks of the catalogue that a process holds.
async fn holders(port: u16) -> usize {
    let locks = view(port, "/locks").await;
    locks
        .iter()
        .filter(|lock| lock["key"] == "catalogue")
        .count()
}

/// Reads at these ports until four readers are seen inside at one time.
async fn readers_meet(ports: &[u16]) {
    let mut readers = JoinSet::new();
    wait::eventually("four readers are inside at once", async || {
        while readers.try_join_next().is_some() {}
        for port in ports.iter().cycle().take(8).copied() {
            readers.spawn(read(port));
        }
        let mut inside = 0;
        for port in ports {
            inside += holders(*port).await;
        }
        inside >= 4
    })
    .await;
    readers.join_all().await;
}

/// Changes the prices while readers read. Each reader checks that it sees all of a change or nothing of it.
async fn changes_are_seen_whole(ports: &[u16]) {
    let mut readers = JoinSet::new();
    for reader in 0..8 {
        let port = ports[reader % ports.len()];
        readers.spawn(async move {
            let mut last = 0;
            while last < 1_806 {
                let mug = read(port).await;
                assert!(mug >= last, "{mug} after {last}");
                last = mug;
            }
        });
    }
    for mug in 1_801..=1_806 {
        let port = ports[usize::try_from(mug).expect("small") % ports.len()];
        let answer = write(port, mug).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
    readers.join_all().await;
}

#[tokio::test]
async fn readers_read_beside_one_another_and_a_writer_writes_alone() {
    let shop = ShopProcess::start();
    readers_meet(&[shop.port()]).await;
    changes_are_seen_whole(&[shop.port()]).await;
}

#[tokio::test]
async fn readers_and_writers_of_two_processes_share_the_catalogue() {
    needs!(redis);
    let redis = RedisServer::start();
    let pair = super::on(&redis);
    readers_meet(pair.ports()).await;
    changes_are_seen_whole(pair.ports()).await;
}

#[tokio::test]
async fn an_order_costs_the_new_price() {
    let shop = ShopProcess::start();
    assert_eq!(write(shop.port(), 1_900).await.status, 204);
    let order = buy_fast(shop.port(), "ada", "mug").await;
    let order: Value = serde_json::from_str(&order.body).expect("JSON");
    assert_eq!(order["cents"], 1_900);
}

#[tokio::test]
async fn a_change_that_is_not_valid_changes_nothing() {
    let (_shop, port) = opened();
    for (prices, status, expected) in [
        (r#"{"mug":1900,"unicorn":1}"#, 404, "unknown_sku"),
        (r#"{"lamp":0,"mug":1900}"#, 422, "invalid_price"),
        (r#"{"mug":"cheap"}"#, 422, "malformed_request"),
    ] {
        let answer = send(port, "PUT", prices).await;
        assert_eq!((answer.status, &*code(&answer)), (status, expected));
    }
    assert_eq!(read(port).await, 1_800);
}

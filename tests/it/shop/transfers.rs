//! Tests transfers between gift cards, each under one lock of two keys.

use lock_tests::http;
use lock_tests::{RedisServer, ShopProcess, needs, wait};
use tokio::time::timeout;

use super::{code, opened, view};

async fn transfer(port: u16, from: &str, to: &str, cents: i64) -> http::Response {
    let body = format!(r#"{{"from":"{from}","to":"{to}","cents":{cents}}}"#);
    let answer = timeout(wait::PATIENCE, http::post(port, "/transfers", &[], &body)).await;
    answer
        .expect("no transfer waits for ever")
        .expect("an answer")
}

/// Returns the money on each card, by the order of their names.
async fn cents(port: u16) -> Vec<i64> {
    let cards = view(port, "/cards").await;
    let cents = cards.iter().map(|card| card["cents"].as_i64());
    cents.map(|cents| cents.expect("a number")).collect()
}

#[tokio::test]
async fn a_transfer_moves_money_or_says_why_not() {
    let (_shop, port) = opened();
    let moved = transfer(port, "red", "blue", 2_500).await;
    assert_eq!(moved.status, 200, "{moved:?}");
    assert_eq!(cents(port).await, [12_500, 10_000, 7_500]);
    for (from, to, cents, expected) in [
        ("red", "blue", 7_501, "not_covered"),
        ("red", "black", 1, "unknown_card"),
        ("red", "red", 1, "invalid_transfer"),
        ("red", "blue", -1, "invalid_transfer"),
    ] {
        assert_eq!(code(&transfer(port, from, to, cents).await), expected);
    }
    assert_eq!(cents(port).await, [12_500, 10_000, 7_500]);
}

#[tokio::test]
async fn transfers_in_circles_in_two_processes_lose_no_cent_and_never_deadlock() {
    needs!(redis);
    let server = RedisServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.sqlite").display().to_string();
    let shops: Vec<_> = (0..2)
        .map(|_| {
            let options = ShopProcess::options().env("REDIS_URL", &server.url());
            options.env("SHOP_DB", &file).start()
        })
        .collect();
    let ways = [
        ("red", "green"),
        ("green", "blue"),
        ("blue", "red"),
        ("green", "red"),
    ];
    let mut tasks = Vec::new();
    for turn in 0..40_usize {
        let port = shops[turn % 2].port();
        let (from, to) = ways[turn % 4];
        let cents = i64::try_from(turn).expect("small") + 1;
        tasks.push(tokio::spawn(async move {
            transfer(port, from, to, cents).await
        }));
    }
    for task in tasks {
        let answer = task.await.expect("no panic");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // Every fourth transfer goes one way, with 1, 5, 9 … cents, and so on.
    let sums: Vec<i64> = (0..4)
        .map(|way| (0..10).map(|turn| 4 * turn + way + 1).sum())
        .collect();
    let red = 10_000 - sums[0] + sums[2] + sums[3];
    let green = 10_000 + sums[0] - sums[1] - sums[3];
    let blue = 10_000 + sums[1] - sums[2];
    assert_eq!(cents(shops[0].port()).await, [blue, green, red]);
}

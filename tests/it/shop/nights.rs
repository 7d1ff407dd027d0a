//! Tests the nightly job of the shop: one report a day, whichever process writes it.

use std::collections::BTreeSet;

use lock_tests::{RedisServer, ShopProcess, http, needs, wait};
use serde_json::Value;

use super::{buy_fast, view};

fn number(night: &Value, field: &str) -> u64 {
    night[field].as_u64().expect("a number")
}

/// Two shops on one Redis and one database, whose days last for a second.
fn two(server: &RedisServer, folder: &tempfile::TempDir) -> [ShopProcess; 2] {
    let db = folder.path().join("shop.sqlite");
    [(); 2].map(|()| {
        let options = ShopProcess::options().env("REDIS_URL", &server.url());
        let options = options.env("SHOP_DB", db.to_str().expect("text"));
        options.env("SHOP_DAY", "1").start()
    })
}

#[tokio::test]
async fn each_night_has_one_report_and_each_order_is_in_one() {
    needs!(redis);
    let server = RedisServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let mut shops = two(&server, &folder);
    let port = shops[0].port();
    assert_eq!(buy_fast(port, "ada", "mug").await.status, 201);
    assert_eq!(buy_fast(shops[1].port(), "ben", "mug").await.status, 201);
    let reported = async || {
        let nights = view(port, "/nights").await;
        nights
            .iter()
            .map(|night| number(night, "orders"))
            .sum::<u64>()
    };
    wait::eventually("the orders are reported", async || reported().await >= 2).await;
    wait::eventually("four nights have passed", async || {
        view(port, "/nights").await.len() >= 4
    })
    .await;
    assert_eq!(reported().await, 2, "each order once");
    let nights = view(port, "/nights").await;
    let ends: BTreeSet<_> = nights.iter().map(|night| number(night, "ends")).collect();
    assert_eq!(ends.len(), nights.len(), "{nights:?}");
    for shop in &mut shops {
        // A second run of one night is refused by the primary key.
        let output = shop.process().output();
        assert!(!output.contains("report failed"), "{output}");
    }
}

#[tokio::test]
async fn the_nights_of_a_process_that_was_killed_belong_to_the_other() {
    needs!(redis);
    let server = RedisServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let [mut first, second] = two(&server, &folder);
    let port = second.port();
    wait::eventually("a night has passed", async || {
        !view(port, "/nights").await.is_empty()
    })
    .await;
    first.process().kill();
    let last = number(&view(port, "/nights").await[0], "ends");
    wait::eventually("the other process writes the next reports", async || {
        let nights = view(port, "/nights").await;
        let later = nights
            .iter()
            .filter(|night| number(night, "ends") > last + 1_000);
        let by_it = later.filter(|night| number(night, "port") == u64::from(port));
        by_it.count() >= 2
    })
    .await;
    assert!(
        http::get(port, "/readyz")
            .await
            .is_ok_and(|answer| answer.status == 200)
    );
}

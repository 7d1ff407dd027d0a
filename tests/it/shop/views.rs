//! Tests the views of the shop: stock, orders, locks.

use lock_tests::{RedisServer, ShopProcess, http, needs, wait};

use super::{buy, buy_fast, code, opened, orders, shelf, view};

#[tokio::test]
async fn stock_orders_and_locks_are_json() {
    let (_shop, port) = opened();
    let order = tokio::spawn(async move { buy(port, "ada").await.status });
    wait::eventually("both locks of the order are held", async || {
        view(port, "/locks").await.len() == 2
    })
    .await;
    let mut keys = Vec::new();
    for lock in view(port, "/locks").await {
        keys.push(lock["key"].as_str().expect("a key").to_owned());
        let remaining = lock["remaining_ms"].as_u64().expect("a number");
        assert!((1..=10_000).contains(&remaining), "{lock}");
        assert!(lock["held_ms"].is_u64() && lock["fencing_token"].is_u64());
    }
    keys.sort();
    assert_eq!(keys, ["order:ada", "submit:ada:POST:/orders"]);
    assert_eq!(order.await.expect("an answer"), 201);

    let order = &orders(port, "mug").await[0];
    assert_eq!(order["user"], "ada");
    assert_eq!(
        (&order["quantity"], &order["cents"]),
        (&1.into(), &1800.into())
    );
    let shelf = shelf(port, "mug").await;
    let told = ["initial", "stock", "sold", "orders", "oversold"].map(|field| &shelf[field]);
    assert_eq!(told, [10, 9, 1, 1, 0]);
    assert_eq!(view(port, "/stock").await.len(), 4);
    let held = view(port, "/locks").await;
    assert!(held.is_empty(), "released before the answer: {held:?}");
}

#[tokio::test]
async fn the_shelves_can_be_filled_again() {
    let (_shop, port) = opened();
    assert_eq!(buy_fast(port, "ada", "mug").await.status, 201);
    let reset = http::post(port, "/reset", &[], "")
        .await
        .expect("an answer");
    assert_eq!(reset.status, 204, "{}", reset.body);
    assert_eq!(shelf(port, "mug").await["stock"], 10);
    assert_eq!(orders(port, "mug").await.len(), 0);
    assert_eq!(buy_fast(port, "ben", "mug").await.status, 201);
}

#[tokio::test]
async fn the_write_of_an_owner_that_froze_is_refused_by_its_token() {
    let (_shop, port) = opened();
    let late = http::post(port, "/freeze", &[], "")
        .await
        .expect("an answer");
    assert_eq!((late.status, &*code(&late)), (409, "stale_fencing_token"));
    let told: serde_json::Value = serde_json::from_str(&late.body).expect("JSON");
    assert_eq!(told["lock_was_valid_before"], true);
    assert_eq!(told["lock_is_valid_now"], false);
    let orders = orders(port, "lamp").await;
    assert_eq!(orders.len(), 1, "the frozen owner has sold nothing");
    assert_eq!(orders[0], told["sold_meanwhile"]);
    let newer = orders[0]["fencing_token"].as_i64().expect("a token");
    assert!(newer > told["fencing_token"].as_i64().expect("a token"));
    assert_eq!(shelf(port, "lamp").await["stock"], 9);
}

#[tokio::test]
async fn a_shop_is_ready_as_long_as_its_redis_answers() {
    needs!(redis);
    let server = RedisServer::start();
    let shop = ShopProcess::options().env("REDIS_URL", &server.url());
    let shop = shop.start();
    let ready = async || {
        let answer = http::get(shop.port(), "/readyz").await;
        answer.expect("an answer").status
    };
    assert_eq!(ready().await, 200);
    server.kill();
    assert_eq!(ready().await, 503);
    server.start_again();
    wait::eventually("the shop is ready again", async || ready().await == 200).await;
}

//! Tests that a shop that is asked to end finishes its orders first.

use lock_tests::{RedisServer, ShopProcess, needs};

use super::{buy, ends_well, orders, pair, under_way};

async fn ends_after_its_order(mut shop: ShopProcess) {
    let port = shop.port();
    let order = tokio::spawn(async move { buy(port, "ada").await });
    under_way(port).await;
    shop.process().terminate();
    let answer = order.await.expect("an answer");
    assert_eq!(answer.status, 201, "{answer:?}");
    let said = ends_well(&mut shop);
    assert!(!said.contains("still"), "every lock was released: {said}");
}

#[tokio::test]
async fn an_order_under_way_is_finished_first() {
    ends_after_its_order(ShopProcess::start()).await;
}

#[tokio::test]
async fn an_order_under_way_on_redis_is_finished_and_its_locks_released() {
    needs!(redis);
    let server = RedisServer::start();
    let options = ShopProcess::options().env("REDIS_URL", &server.url());
    ends_after_its_order(options.start()).await;
    pair::only_cooldowns_are_left(&server);
}

/// The server waits for its clients. This client has gone, and its order still asks for a
/// lock.
#[tokio::test]
async fn an_order_whose_client_has_gone_is_finished_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("shop.sqlite");
    let options = ShopProcess::options().env("SHOP_DB", db.to_str().expect("text"));
    let mut shop = options.clone().start();
    let port = shop.port();
    let client = tokio::spawn(async move { buy(port, "ada").await });
    under_way(port).await;
    client.abort();
    assert!(
        client.await.is_err(),
        "the client has gone before its answer"
    );
    shop.process().terminate();
    let said = ends_well(&mut shop);
    assert!(!said.contains("still"), "every lock was released: {said}");
    let again = options.start();
    assert_eq!(orders(again.port(), "mug").await.len(), 1, "{said}");
}

#[tokio::test]
async fn a_pair_finishes_its_orders_too() {
    needs!(redis);
    ends_after_its_order(pair::with_its_own_redis()).await;
}

#[test]
fn a_shop_without_work_ends_at_once() {
    let mut shop = ShopProcess::start();
    shop.process().terminate();
    ends_well(&mut shop);
}

//! Tests clicks on one process with its locks in memory, as `cargo run --example shop` starts
//! it.

use lock_tests::{http, wait};
use tokio::join;

use super::{buy, buy_fast, by_status, code, opened, orders, retry_after, shelf, under_way};

#[tokio::test]
async fn a_double_click_places_one_order_and_gets_one_refusal_with_retry_after() {
    let (_shop, port) = opened();
    let (placed, refused) = join!(buy(port, "ada"), buy(port, "ada"));
    let (placed, refused) = by_status(placed, refused);
    assert_eq!((placed.status, refused.status), (201, 409), "{refused:?}");
    assert_eq!(code(&refused), "lock_busy");
    // In flight, `Retry-After` is a hint: at most the lock's 10 s.
    assert!((1..=10).contains(&retry_after(&refused)), "{refused:?}");

    let orders = orders(port, "mug").await;
    assert_eq!(orders.len(), 1);
    let answered: serde_json::Value = serde_json::from_str(&placed.body).expect("JSON");
    assert_eq!(orders[0], answered, "the answer has the order of the list");
    assert_eq!(shelf(port, "mug").await["stock"], 9);
}

#[tokio::test]
async fn a_click_after_a_fast_answer_is_refused_as_done_a_moment_ago() {
    let (_shop, port) = opened();
    assert_eq!(buy_fast(port, "ada", "mug").await.status, 201);
    let refused = buy_fast(port, "ada", "mug").await;
    assert_eq!(refused.status, 409);
    assert_eq!(code(&refused), "lock_cooling_down");
    assert!((1..=2).contains(&retry_after(&refused)), "{refused:?}");
    assert_eq!(orders(port, "mug").await.len(), 1);
}

#[tokio::test]
async fn a_click_after_the_cooldown_places_a_second_order() {
    let (_shop, port) = opened();
    assert_eq!(buy_fast(port, "ada", "mug").await.status, 201);
    wait::eventually("the cooldown is over", async || {
        let again = buy_fast(port, "ada", "mug").await;
        assert!([201, 409].contains(&again.status), "{again:?}");
        again.status == 201
    })
    .await;
    let orders = orders(port, "mug").await;
    assert_eq!(orders.len(), 2);
    assert!(super::pair::seconds_between(&orders[0], &orders[1]) >= 2.0);
}

#[tokio::test]
async fn another_user_buys_while_the_first_order_is_under_way() {
    let (_shop, port) = opened();
    let first = tokio::spawn(async move { buy(port, "ada").await.status });
    under_way(port).await;
    assert_eq!(buy_fast(port, "ben", "mug").await.status, 201);
    assert!(
        !first.is_finished(),
        "the second order did not wait for the first"
    );
    assert_eq!(first.await.expect("an answer"), 201);
    assert_eq!(orders(port, "mug").await.len(), 2);
}

#[tokio::test]
async fn reading_is_never_locked() {
    let (_shop, port) = opened();
    let order = tokio::spawn(async move { buy(port, "ada").await.status });
    under_way(port).await;
    for path in ["/orders", "/orders?pay=fast", "/stock", "/locks", "/"] {
        let read = http::request(port, "GET", path, &[("x-user-id", "ada")], "").await;
        assert_eq!(read.expect("an answer").status, 200, "{path}");
    }
    assert!(
        !order.is_finished(),
        "the reads were answered while the order was under way"
    );
    assert_eq!(order.await.expect("an answer"), 201);
}

#[tokio::test]
async fn without_the_kit_a_double_click_places_two_orders() {
    let (_shop, port) = opened();
    let click = || {
        super::send(
            port,
            "/plain/orders",
            "ada",
            r#"{"sku":"mug","quantity":1}"#,
        )
    };
    let (first, second) = join!(click(), click());
    assert_eq!((first.status, second.status), (201, 201));
}

//! Tests orders that a client sends again under the same key.

use lock_tests::ShopProcess;
use lock_tests::http::{self, Response};

use super::{code, orders};

const MUG: &str = r#"{"sku":"mug","quantity":1}"#;

async fn order(shop: &ShopProcess, user: &str, key: &str, body: &str) -> Response {
    let headers = [("x-user-id", user), ("idempotency-key", key)];
    let path = "/idempotent/orders?pay=fast";
    http::post(shop.port(), path, &headers, body)
        .await
        .expect("an answer")
}

#[tokio::test]
async fn a_repeated_order_gets_the_answer_of_the_first_and_sells_nothing() {
    let shop = ShopProcess::start();
    let first = order(&shop, "ada", "one", MUG).await;
    assert_eq!(first.status, 201, "{}", first.body);
    assert!(!first.headers.contains_key("idempotency-replayed"));

    let again = order(&shop, "ada", "one", MUG).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(orders(shop.port(), "mug").await.len(), 1);

    let other = order(&shop, "ada", "two", MUG).await;
    assert_eq!(other.status, 201);
    let of_another = order(&shop, "ben", "one", MUG).await;
    assert_eq!(of_another.status, 201);
    assert!(!of_another.headers.contains_key("idempotency-replayed"));
    assert_eq!(orders(shop.port(), "mug").await.len(), 3);
}

#[tokio::test]
async fn another_order_under_the_same_key_is_refused() {
    let shop = ShopProcess::start();
    order(&shop, "ada", "one", MUG).await;
    let two = order(&shop, "ada", "one", r#"{"sku":"mug","quantity":2}"#).await;
    assert_eq!((two.status, &*code(&two)), (422, "lock_key_reused"));
}

#[tokio::test]
async fn an_order_whose_answer_is_lost_is_there_when_it_is_sent_again() {
    let shop = ShopProcess::start();
    let headers = [
        ("x-user-id", "ada"),
        ("idempotency-key", "one"),
        ("x-lose-answer", "1"),
    ];
    let path = "/idempotent/orders?pay=fast";
    let lost = http::post(shop.port(), path, &headers, MUG).await;
    assert!(
        !lost.is_ok_and(|answer| answer.body.contains("\"id\"")),
        "the answer is lost"
    );
    let again = order(&shop, "ada", "one", MUG).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(orders(shop.port(), "mug").await.len(), 1);
}

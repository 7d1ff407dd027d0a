//! Tests invalid orders: each gets an error that names its mistake, and does not block its
//! user.

use lock_tests::{ShopProcess, http};

use super::{buy_fast, code, opened, orders, send, shelf};

#[tokio::test]
async fn an_unknown_product_is_not_found() {
    let shop = ShopProcess::start();
    let answer = buy_fast(shop.port(), "ada", "unicorn").await;
    assert_eq!((answer.status, &*code(&answer)), (404, "unknown_sku"));
}

#[tokio::test]
async fn an_empty_shelf_is_sold_out_and_sells_no_more() {
    let (_shop, port) = opened();
    let all = r#"{"sku":"mug","quantity":10}"#;
    assert_eq!(send(port, "/orders?pay=fast", "ada", all).await.status, 201);
    let answer = buy_fast(port, "ben", "mug").await;
    assert_eq!((answer.status, &*code(&answer)), (422, "out_of_stock"));
    assert_eq!(shelf(port, "mug").await["stock"], 0);
    assert_eq!(orders(port, "mug").await.len(), 1);
}

#[tokio::test]
async fn an_order_for_more_than_the_stock_sells_nothing() {
    let (_shop, port) = opened();
    let body = r#"{"sku":"mug","quantity":11}"#;
    let answer = send(port, "/orders?pay=fast", "ada", body).await;
    assert_eq!((answer.status, &*code(&answer)), (422, "out_of_stock"));
    assert_eq!(shelf(port, "mug").await["stock"], 10);
}

#[tokio::test]
async fn a_request_without_one_valid_user_cannot_buy() {
    let (_shop, port) = opened();
    let long = "a".repeat(65);
    let nobodies: [&[(&str, &str)]; 6] = [
        &[],
        &[("x-user-id", "")],
        &[("x-user-id", "a b")],
        &[("x-user-id", "<uid>")],
        &[("x-user-id", &long)],
        &[("x-user-id", "ada"), ("x-user-id", "ben")],
    ];
    for headers in nobodies {
        let body = r#"{"sku":"mug","quantity":1}"#;
        let answer = http::post(port, "/orders?pay=fast", headers, body).await;
        let answer = answer.expect("an answer");
        assert_eq!(
            (answer.status, &*code(&answer)),
            (401, "no_user"),
            "{headers:?}"
        );
    }
    assert_eq!(orders(port, "mug").await.len(), 0);
}

#[tokio::test]
async fn an_invalid_order_is_refused_with_a_problem_and_its_user_can_still_buy() {
    let (_shop, port) = opened();
    let huge_text = format!(r#"{{"sku":"{}","quantity":1}}"#, "m".repeat(100_000));
    let long_sku = format!(r#"{{"sku":"{}","quantity":1}}"#, "m".repeat(2_000));
    let cases = [
        ("", 400),
        ("{", 400),
        ("null", 422),
        ("[]", 422),
        ("{}", 422),
        (r#"{"sku":"mug"}"#, 422),
        (r#"{"sku":"mug","quantity":1}}"#, 400),
        (r#"{"sku":"mug","quantity":1,"price":0}"#, 422),
        (r#"{"sku":"mug","quantity":0}"#, 422),
        (r#"{"sku":"mug","quantity":-1}"#, 422),
        (r#"{"sku":"mug","quantity":101}"#, 422),
        (r#"{"sku":"mug","quantity":9223372036854775807}"#, 422),
        (r#"{"sku":"mug","quantity":9223372036854775808}"#, 422),
        (r#"{"sku":"mug","quantity":1e300}"#, 422),
        (r#"{"sku":"mug","quantity":1.5}"#, 422),
        (r#"{"sku":"mug","quantity":"1"}"#, 422),
        (r#"{"sku":"mug","quantity":null}"#, 422),
        (r#"{"sku":7,"quantity":1}"#, 422),
        (r#"{"sku":"","quantity":1}"#, 404),
        (r#"{"sku":"<sku>:{%}","quantity":1}"#, 404),
        (r#"{"sku":"'; DROP TABLE orders; --","quantity":1}"#, 404),
        (&long_sku, 404),
        (&huge_text, 413),
    ];
    for (body, status) in cases {
        let answer = send(port, "/orders?pay=fast", "ada", body).await;
        let shown: String = body.chars().take(60).collect();
        assert_eq!(answer.status, status, "{shown}: {}", answer.body);
        assert!(!code(&answer).is_empty(), "{shown}");
    }
    let no_json = [("x-user-id", "ada"), ("content-type", "text/plain")];
    let body = r#"{"sku":"mug","quantity":1}"#;
    let answer = http::request(port, "POST", "/orders?pay=fast", &no_json, body).await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.status, &*code(&answer)), (415, "malformed_request"));
    let answer = send(port, "/orders?pay=never", "ada", body).await;
    assert_eq!((answer.status, &*code(&answer)), (400, "malformed_request"));

    // No order of this user succeeded, and a refusal has no cooldown.
    assert_eq!(buy_fast(port, "ada", "mug").await.status, 201);
    assert_eq!(shelf(port, "mug").await["stock"], 9);
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let (_shop, port) = opened();
    let answer = http::get(port, "/nowhere").await.expect("an answer");
    assert_eq!((answer.status, &*code(&answer)), (404, "no_such_page"));
    for method in ["PUT", "DELETE", "PATCH"] {
        let answer = http::request(port, method, "/orders", &[("x-user-id", "ada")], "").await;
        assert_eq!(answer.expect("an answer").status, 405, "{method}");
    }
}

//! Tests the example shop from outside: processes, ports and HTTP.

mod catalogue;
mod clicks;
mod database;
mod ending;
mod exports;
mod input;
mod killed;
mod metrics;
mod nights;
mod outage;
mod pair;
mod repeated;
mod starting;
mod transfers;
mod views;

pub(crate) use pair::on;

use lock_tests::http::{self, Response};
use lock_tests::{ShopProcess, wait};
use serde_json::Value;
use tokio::time::timeout;

/// Starts a shop with its locks in memory. Returns it with its port.
#[track_caller]
fn opened() -> (ShopProcess, u16) {
    let shop = ShopProcess::start();
    let port = shop.port();
    (shop, port)
}

/// Waits for the end of a shop that was asked to end, which must be no failure. Returns what the shop has printed.
#[track_caller]
fn ends_well(shop: &mut ShopProcess) -> String {
    let status = shop.process().wait(wait::PATIENCE);
    let said = shop.process().output();
    assert!(status.is_some_and(|it| it.success()), "{status:?}: {said}");
    said
}

/// Orders one piece, as the page does. The bank takes its 800 ms.
pub(crate) async fn buy(port: u16, user: &str) -> Response {
    send(port, "/orders", user, r#"{"sku":"mug","quantity":1}"#).await
}

/// Orders one piece without the bank's delay.
pub(crate) async fn buy_fast(port: u16, user: &str, sku: &str) -> Response {
    let body = format!(r#"{{"sku":"{sku}","quantity":1}}"#);
    send(port, "/orders?pay=fast", user, &body).await
}

async fn send(port: u16, path: &str, user: &str, body: &str) -> Response {
    let headers = [("x-user-id", user)];
    let answer = timeout(wait::PATIENCE, http::post(port, path, &headers, body)).await;
    let answer = answer.unwrap_or_else(|_| panic!("the order of {user} is not answered on {port}"));
    answer.unwrap_or_else(|error| panic!("{path} for {user} on {port}: {error}"))
}

/// Returns the answer to `GET` of a path, which is JSON.
pub(crate) async fn view(port: u16, path: &str) -> Vec<Value> {
    let answer = http::get(port, path).await.expect("an answer");
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    assert_eq!(answer.headers["content-type"], "application/json");
    serde_json::from_str(&answer.body).expect("a list")
}

/// Waits until an order is under way.
async fn under_way(port: u16) {
    wait::eventually("the order is under way", async || {
        !view(port, "/locks").await.is_empty()
    })
    .await;
}

/// Returns the orders of the lane with the kit for one product, oldest first.
async fn orders(port: u16, sku: &str) -> Vec<Value> {
    let mut orders = view(port, "/orders").await;
    orders.retain(|order| order["lane"] == "locked" && order["sku"] == sku);
    orders.reverse();
    orders
}

/// Returns the shelf of the lane with the kit for one product.
async fn shelf(port: u16, sku: &str) -> Value {
    let shelves = view(port, "/stock").await;
    let mut shelves = shelves.into_iter();
    let shelf = shelves.find(|shelf| shelf["lane"] == "locked" && shelf["sku"] == sku);
    shelf.expect("a product of the shop")
}

/// Checks that the initial stock is the sum of the pieces sold and left.
async fn assert_nothing_oversold(port: u16, sku: &str) {
    let shelf = shelf(port, sku).await;
    let number = |field: &str| shelf[field].as_i64().expect("a number");
    assert_eq!(number("oversold"), 0, "{shelf}");
    assert_eq!(
        number("stock") + number("sold"),
        number("initial"),
        "{shelf}"
    );
}

/// Returns the `code` of a refusal, after a check of its other fields.
#[track_caller]
pub(crate) fn code(answer: &Response) -> String {
    let kind = &answer.headers["content-type"];
    assert_eq!(kind, "application/problem+json", "{answer:?}");
    let problem: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(problem["status"], answer.status, "{answer:?}");
    let code = problem["code"].as_str().expect("a code");
    code.to_owned()
}

/// Returns the `Retry-After` of an answer, in seconds.
#[track_caller]
pub(crate) fn retry_after(answer: &Response) -> u64 {
    let value = answer.headers.get("retry-after");
    let value = value.unwrap_or_else(|| panic!("no Retry-After: {answer:?}"));
    value.parse().expect("whole seconds")
}

/// Returns both answers, the better one first.
fn by_status(first: Response, second: Response) -> (Response, Response) {
    if first.status <= second.status {
        (first, second)
    } else {
        (second, first)
    }
}

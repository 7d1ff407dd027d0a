//! Tests two processes on one Redis and one database.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_tests::http::Response;
use lock_tests::{RedisServer, ShopProcess, missing, needs, wait};
use serde_json::Value;
use tokio::join;

use super::{
    assert_nothing_oversold, buy, buy_fast, by_status, code, ends_well, orders, retry_after, shelf,
};

/// Starts `--pair` with the redis-server that the tests use.
pub(crate) fn with_its_own_redis() -> ShopProcess {
    let server = missing::redis().expect("checked by `needs!`");
    let options = ShopProcess::options().arg("--pair");
    let server = server.to_str().expect("text");
    options.env("REDIS_SERVER", server).start()
}

pub(crate) fn on(server: &RedisServer) -> ShopProcess {
    let options = ShopProcess::options().arg("--pair");
    options.env("REDIS_URL", &server.url()).start()
}

/// Two shops that share only the Redis and the database.
struct Separate {
    shops: [ShopProcess; 2],
    // The folder is removed after both shops have ended.
    _folder: tempfile::TempDir,
}

impl Separate {
    fn start(server: &RedisServer) -> Separate {
        let folder = tempfile::tempdir().expect("a folder");
        let db = folder.path().join("shop.sqlite");
        let shops = [(); 2].map(|()| {
            let options = ShopProcess::options().env("REDIS_URL", &server.url());
            options.env("SHOP_DB", db.to_str().expect("text")).start()
        });
        Separate {
            shops,
            _folder: folder,
        }
    }

    fn ports(&self) -> [u16; 2] {
        [self.shops[0].port(), self.shops[1].port()]
    }
}

pub(super) fn ports(pair: &ShopProcess) -> [u16; 2] {
    let ports = pair.ports();
    ports.try_into().expect("the opening line names both ports")
}

/// Clicks again after 503. A shop that gets no processor for half a second says that the locks gave no answer.
async fn click_until_the_locks_answer(port: u16, path: &str, user: &str, body: &str) -> Response {
    let clicks = async {
        loop {
            let answer = super::send(port, path, user, body).await;
            if answer.status != 503 {
                return answer;
            }
            assert_eq!(code(&answer), "lock_unavailable");
            tokio::time::sleep(Duration::from_secs(retry_after(&answer))).await;
        }
    };
    let answer = tokio::time::timeout(wait::PATIENCE, clicks).await;
    answer.expect("the locks answer in the end")
}

/// Sends ten clicks each of twenty users at once, every other one to the other process.
async fn two_hundred_clicks(ports: [u16; 2], path: &'static str) -> Vec<Response> {
    let clicks: Vec<_> = (0..200)
        .map(|click| {
            let (port, user) = (ports[click / 20 % 2], format!("user-{}", click % 20));
            let body = r#"{"sku":"mug","quantity":1}"#;
            tokio::spawn(async move { click_until_the_locks_answer(port, path, &user, body).await })
        })
        .collect();
    let mut answers = Vec::new();
    for click in clicks {
        answers.push(click.await.expect("an answer"));
    }
    answers
}

/// Checks the conditions that hold after any number of clicks, on a fast or slow machine.
async fn sold_once_each(ports: [u16; 2], answers: &[Response]) {
    let mut count = BTreeMap::new();
    for answer in answers {
        *count.entry(answer.status).or_insert(0) += 1;
        match answer.status {
            201 => {}
            409 => {
                assert!(["lock_busy", "lock_cooling_down"].contains(&&*code(answer)));
                assert!(retry_after(answer) >= 1);
            }
            422 => assert_eq!(code(answer), "out_of_stock"),
            _ => panic!("{answer:?}"),
        }
    }
    let orders = orders(ports[0], "mug").await;
    assert_eq!(count.get(&201), Some(&orders.len()), "{count:?}");
    // Twenty users want one piece each of ten. No user gets 422 before the stock is gone.
    assert_eq!(orders.len(), 10, "{count:?}");
    assert_nothing_oversold(ports[0], "mug").await;
    assert_eq!(shelf(ports[1], "mug").await["stock"], 0);

    let token = |order: &Value| order["fencing_token"].as_i64().expect("a token");
    let tokens: Vec<_> = orders.iter().map(token).collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    for (index, order) in orders.iter().enumerate() {
        let later = orders[index + 1..].iter();
        for again in later.filter(|later| later["user"] == order["user"]) {
            assert!(seconds_between(order, again) >= 2.0, "{order} {again}");
        }
    }
}

pub(super) fn seconds_between(first: &Value, second: &Value) -> f64 {
    seconds(second) - seconds(first)
}

/// Returns the second of its day at which an order was placed, from `…T12:34:56.789Z`.
fn seconds(order: &Value) -> f64 {
    let at = order["created_at"].as_str().expect("a time");
    let (_, time) = at.trim_end_matches('Z').split_once('T').expect("a time");
    let parts = time.split(':').map(|part| part.parse::<f64>());
    parts.fold(0.0, |sum, part| sum * 60.0 + part.expect("a number"))
}

/// Checks that the only keys left are cooldowns, and that they end in time.
#[track_caller]
pub(super) fn only_cooldowns_are_left(server: &RedisServer) {
    for key in server.keys() {
        if key == "lockkit:!f" {
            continue;
        }
        let value = server.get(&key).unwrap_or_default();
        let cools = value.starts_with("cooling/") || value.is_empty();
        assert!(cools, "{key} is a lock without an owner");
        let left = server.time_to_live(&key).unwrap_or_default();
        assert!(left.as_secs() <= 2, "{key} stays for {left:?}");
    }
    wait::until("all cooldowns are over", || server.keys() == ["lockkit:!f"]);
}

#[tokio::test]
async fn a_pair_with_its_own_redis_sells_its_stock_and_one_order_for_each_double_click() {
    needs!(redis);
    let pair = with_its_own_redis();
    let answers = two_hundred_clicks(ports(&pair), "/orders").await;
    sold_once_each(ports(&pair), &answers).await;
}

#[tokio::test]
async fn a_pair_on_a_given_redis_sells_its_stock_and_one_order_for_each_double_click() {
    needs!(redis);
    let server = RedisServer::start();
    let mut pair = on(&server);
    let answers = two_hundred_clicks(ports(&pair), "/orders?pay=fast").await;
    sold_once_each(ports(&pair), &answers).await;
    pair.process().terminate();
    ends_well(&mut pair);
    only_cooldowns_are_left(&server);
}

#[tokio::test]
async fn two_shops_that_share_redis_and_database_are_a_pair() {
    needs!(redis);
    let server = RedisServer::start();
    let shops = Separate::start(&server);
    let answers = two_hundred_clicks(shops.ports(), "/orders").await;
    sold_once_each(shops.ports(), &answers).await;
}

#[tokio::test]
async fn one_click_to_each_process_at_once_places_one_order() {
    needs!(redis);
    let server = RedisServer::start();
    let pair = on(&server);
    let [first, second] = ports(&pair);
    let (placed, refused) = join!(buy(first, "ada"), buy(second, "ada"));
    let (placed, refused) = by_status(placed, refused);
    assert_eq!((placed.status, refused.status), (201, 409), "{refused:?}");
    assert_eq!(code(&refused), "lock_busy");

    let again = buy_fast(second, "ada", "mug").await;
    assert_eq!((again.status, &*code(&again)), (409, "lock_cooling_down"));
    let (placed, refused) = join!(
        buy_fast(first, "ben", "mug"),
        buy_fast(second, "ben", "mug")
    );
    let (placed, refused) = by_status(placed, refused);
    assert_eq!((placed.status, refused.status), (201, 409), "{refused:?}");
    assert_eq!(orders(first, "mug").await.len(), 2);
}

#[tokio::test]
async fn without_the_kit_a_pair_oversells() {
    needs!(redis);
    let server = RedisServer::start();
    let shops = Separate::start(&server);
    let answers = two_hundred_clicks(shops.ports(), "/plain/orders?pay=fast").await;
    let placed = answers.iter().filter(|answer| answer.status == 201).count();
    assert!(placed > 10, "the lane without the kit must oversell");
}

//! Tests double clicks, bursts and keys by the text on the screen.

use std::time::Duration;

use lock_tests::{Browser, RedisServer, ShopProcess, needs};

use super::{APART, answers, data_until, id, on_the_page, watch, without_slow_payment};

const UNDER_WAY: &str = "Refused: the first order is still under way";
const A_MOMENT_AGO: &str = "Refused: an order was placed a moment ago";

/// Returns the only card with this status and these words.
#[track_caller]
fn one_that_says<'a>(cards: &'a [String], status: &str, words: &str) -> &'a str {
    let mut saying = cards
        .iter()
        .filter(|card| card.contains(status) && card.contains(words));
    let card = saying
        .next()
        .unwrap_or_else(|| panic!("{words:?}: {cards:?}"));
    assert!(saying.next().is_none(), "{words:?} twice: {cards:?}");
    card
}

async fn double_click(browser: &Browser, button: &str) {
    browser.clicks(&id(button, ""), 2, APART).await;
}

#[tokio::test]
async fn a_double_click_with_slow_payment_places_one_order_and_refuses_one_as_under_way() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        double_click(browser, "buy-locked").await;
        let cards = answers(browser, "answers-locked", 2).await;
        one_that_says(&cards, "201", "Order 1 placed");
        let refused = one_that_says(&cards, "409", UNDER_WAY);
        assert!(
            refused.contains("lock_busy") && refused.contains("Retry-After"),
            "{refused}"
        );
        data_until(browser, &id("stock-locked", ""), "data-sold", |sold| {
            sold == 1
        })
        .await;
        let orders = browser.texts(&id("orders-locked", " > li")).await;
        assert_eq!(orders.len(), 1, "{orders:?}");
        assert!(orders[0].contains("1 × mug"), "{orders:?}");
    })
    .await;
}

#[tokio::test]
async fn a_double_click_with_fast_payment_places_one_order_and_refuses_one() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        double_click(browser, "buy-locked").await;
        let cards = answers(browser, "answers-locked", 2).await;
        one_that_says(&cards, "201", "Order 1 placed");
        // Nearly always the first order is done by then. On a busy machine it may still be
        // under way.
        let refused = one_that_says(&cards, "409", "Refused: ");
        let words = if refused.contains("lock_cooling_down") {
            A_MOMENT_AGO
        } else {
            UNDER_WAY
        };
        assert!(refused.contains(words), "{refused}");
        data_until(browser, &id("stock-locked", ""), "data-sold", |sold| {
            sold == 1
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_click_after_the_order_is_refused_as_done_a_moment_ago_and_retry_after_counts_down() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        let retry = id("answers-locked", " .retry");
        watch::texts(browser, &retry).await;
        // The second click comes when the first order is placed, and less than two seconds
        // after it.
        let apart = Duration::from_secs(1);
        browser.clicks(&id("buy-locked", ""), 2, apart).await;
        let cards = answers(browser, "answers-locked", 2).await;
        one_that_says(&cards, "201", "Order 1 placed");
        let refused = one_that_says(&cards, "409", A_MOMENT_AGO);
        assert!(refused.contains("lock_cooling_down"), "{refused}");
        // The count starts from above.
        watch::seen(browser, &retry, |text| text.contains("s left")).await;
        let over = |texts: &[String]| texts.len() == 1 && texts[0].contains("may try again");
        browser.texts_until(&retry, over).await;

        // The card is right: the customer may try again.
        browser.click(&id("buy-locked", "")).await;
        let cards = answers(browser, "answers-locked", 3).await;
        one_that_says(&cards, "201", "Order 2 placed");
    })
    .await;
}

#[tokio::test]
async fn without_the_kit_a_double_click_places_two_orders_and_the_page_says_so() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        double_click(browser, "buy-plain").await;
        let cards = answers(browser, "answers-plain", 2).await;
        assert!(cards.iter().all(|card| card.contains("201")), "{cards:?}");
        one_that_says(&cards, "201", "charged twice");
        data_until(browser, &id("stock-plain", ""), "data-sold", |sold| {
            sold == 2
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn with_twenty_customers_at_once_only_the_lane_without_the_kit_oversells() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        for lane in ["plain", "locked"] {
            browser.click(&id(&format!("burst-{lane}"), "")).await;
            answers(browser, &format!("answers-{lane}"), 20).await;
        }
        let (plain, locked) = (id("stock-plain", ""), id("stock-locked", ""));
        data_until(browser, &plain, "data-oversold", |oversold| oversold > 0).await;
        data_until(browser, &locked, "data-sold", |sold| sold == 10).await;
        data_until(browser, &locked, "data-oversold", |oversold| oversold == 0).await;
        let told = browser.text(&id("stock-plain", " .oversold")).await;
        assert!(told.starts_with("Oversold by "), "{told}");
        assert_eq!(browser.count(&id("stock-locked", " .oversold")).await, 0);
        for (status, count) in [("201", 10), ("422", 10)] {
            let cards = id("answers-locked", &format!(" > [data-status='{status}']"));
            assert_eq!(browser.count(&cards).await, count, "{status}");
        }
    })
    .await;
}

#[tokio::test]
async fn another_customer_buys_while_the_first_order_is_under_way() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        browser.click(&id("buy-locked", "")).await;
        browser.click(&id("other-user", "")).await;
        let cards = answers(browser, "answers-locked", 2).await;
        assert!(cards.iter().all(|card| card.contains("201")), "{cards:?}");
    })
    .await;
}

#[tokio::test]
async fn enter_on_the_focused_button_buys() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        let button = browser.element(&id("buy-locked", "")).await;
        const ENTER: &str = "\u{e007}";
        button.send_keys(ENTER).await.expect("a focused button");
        let cards = answers(browser, "answers-locked", 1).await;
        one_that_says(&cards, "201", "Order 1 placed");
    })
    .await;
}

#[tokio::test]
async fn a_double_click_on_a_pair_sends_one_click_to_each_process_and_one_is_refused() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let pair = crate::shop::on(&redis);
    on_the_page(&pair, async |browser| {
        double_click(browser, "buy-locked").await;
        let cards = answers(browser, "answers-locked", 2).await;
        let placed = one_that_says(&cards, "201", "Order 1 placed");
        let refused = one_that_says(&cards, "409", UNDER_WAY);
        let on = |card: &str| {
            pair.ports()
                .iter()
                .position(|port| card.contains(&format!(":{port}")))
        };
        let (one, other) = (on(placed), on(refused));
        assert!(
            one.is_some() && other.is_some() && one != other,
            "{cards:?}"
        );
    })
    .await;
}

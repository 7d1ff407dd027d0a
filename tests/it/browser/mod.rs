//! Tests the pages of the shop and of the console in a real browser, with real clicks, by their visible text.

mod clicks;
mod console;
mod console_layout;
mod killed;
mod kinds;
mod lost;
mod page;
mod picture;
mod watch;

use std::time::Duration;

use lock_tests::{Browser, ShopProcess};

/// The time between the two clicks of a person's double click.
const APART: Duration = Duration::from_millis(150);

/// Opens the page, checks that it has loaded, and runs `test`.
///
/// Afterwards the page must have no errors and must have sent requests to the shop only.
async fn on_the_page(shop: &ShopProcess, test: impl AsyncFnOnce(&Browser)) {
    let shop_ports = shop.ports();
    Browser::session(async |browser| {
        watch::errors(browser).await;
        browser.open(&shop.url()).await;
        // The last lines of the page's script fill it.
        browser
            .texts_until("[data-testid=curl]", |texts| {
                texts.iter().any(|text| text.contains("curl"))
            })
            .await;
        test(browser).await;
        assert_eq!(watch::errors_so_far(browser).await, Vec::<String>::new());
        watch::only_asked(browser, shop_ports).await;
    })
    .await;
}

/// Builds the selector of an element by its test id, and of elements inside it.
fn id(id: &str, inside: &str) -> String {
    format!("[data-testid={id}]{inside}")
}

/// Returns the visible texts of a list's cards, the newest first.
///
/// The function waits until there are `count` cards and all are answered.
async fn answers(browser: &Browser, list: &str, count: usize) -> Vec<String> {
    let cards = id(list, " > li");
    browser
        .texts_until(&cards, |cards| {
            cards.len() == count && !cards.iter().any(|card| card.contains("Waiting"))
        })
        .await
}

async fn without_slow_payment(browser: &Browser) {
    browser.click("label.switch").await;
    let selected = browser.element(&id("slow-payment", "")).await;
    assert!(!selected.is_selected().await.expect("a checkbox"));
}

/// Waits until `wanted` accepts a data attribute of an element.
async fn data_until(browser: &Browser, css: &str, name: &str, wanted: impl Fn(i64) -> bool) {
    let what = format!("{name} of {css} is as wanted");
    lock_tests::wait::eventually(&what, async || {
        let element = browser.element(css).await;
        let value = element.attr(name).await.expect("an element");
        value.is_some_and(|value| wanted(value.parse().expect("a number")))
    })
    .await;
}

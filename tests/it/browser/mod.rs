//! The shop's page in a real browser, with real clicks: what a person sees.

mod clicks;
mod page;
mod watch;

use std::time::Duration;

use lock_tests::{Browser, ShopProcess};

/// Between the two clicks of a person's double click.
const APART: Duration = Duration::from_millis(150);

/// Opens the page, checks that it has come up, and runs `test`; afterwards nothing may have gone
/// wrong in the page, and nothing may have been asked of anybody but the shop.
async fn on_the_page(shop: &ShopProcess, test: impl AsyncFnOnce(&Browser)) {
    let shop_ports = shop.ports();
    Browser::session(async |browser| {
        watch::errors(browser).await;
        browser.open(&shop.url()).await;
        // Filled by the last lines of its script.
        browser
            .texts_until("[data-testid=curl]", |texts| texts[0].contains("curl"))
            .await;
        test(browser).await;
        assert_eq!(watch::errors_so_far(browser).await, Vec::<String>::new());
        watch::only_asked(browser, shop_ports).await;
    })
    .await;
}

/// The selector of an element by its test id, and what is inside it.
fn id(id: &str, inside: &str) -> String {
    format!("[data-testid={id}]{inside}")
}

/// What the cards of a list say, in the words on the screen, the newest first: as soon as there are
/// so many and all are answered.
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

/// What a data attribute of an element says, as soon as `wanted` accepts it.
async fn data_until(browser: &Browser, css: &str, name: &str, wanted: impl Fn(i64) -> bool) {
    let what = format!("{name} of {css} is as wanted");
    lock_tests::wait::eventually(&what, async || {
        let element = browser.element(css).await;
        let value = element.attr(name).await.expect("an element");
        value.is_some_and(|value| wanted(value.parse().expect("a number")))
    })
    .await;
}

//! Tests the rest of the page: the locks, the frozen owner, the shelves, the code.

use lock_tests::{ShopProcess, needs, wait};

use super::{answers, data_until, id, on_the_page, watch, without_slow_payment};

#[tokio::test]
async fn the_locks_of_an_order_are_shown_while_it_is_under_way_and_gone_with_it() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        let locks = id("locks", " > li");
        watch::texts(browser, &locks).await;
        let mut clicks = 0;
        // A page on a busy machine may not look at the locks during one order.
        wait::eventually("the lock of an order is shown", async || {
            browser.click(&id("buy-locked", "")).await;
            clicks += 1;
            answers(browser, "answers-locked", clicks).await;
            watch::has_seen(browser, &locks, |text| text.contains("order:ada")).await
        })
        .await;
        let none = |texts: &[String]| texts.len() == 1 && texts[0].starts_with("None.");
        browser.texts_until(&locks, none).await;
    })
    .await;
}

#[tokio::test]
async fn the_write_of_a_frozen_owner_is_refused_for_its_stale_token() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        browser.click(&id("freeze", "")).await;
        let refused = |texts: &[String]| {
            let last = texts.last();
            last.is_some_and(|last| last.contains("409") && last.contains("stale token"))
        };
        let steps = browser
            .texts_until(&id("answers-freeze", " > li"), refused)
            .await;
        let told = steps.join("\n");
        assert!(
            told.contains("The owner held the lock with token "),
            "{told}"
        );
        assert!(told.contains("stale_fencing_token"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn the_page_shows_a_report_for_each_night() {
    needs!(browser);
    let shop = ShopProcess::options().env("SHOP_DAY", "1").start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        browser.click(&id("buy-locked", "")).await;
        let nights = id("nights", " > li");
        let reported = |texts: &[String]| texts.iter().any(|text| text.contains("1 order, €18.00"));
        let texts = browser.texts_until(&nights, reported).await;
        let writer = format!("written by :{}", shop.port());
        assert!(texts.iter().all(|text| text.contains(&writer)), "{texts:?}");
        let code = browser.text(&id("code-night", "")).await;
        assert!(
            code.contains("self.locks.every(\"job:report\", day)"),
            "{code}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_shelves_can_be_filled_again() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        browser.click(&id("buy-locked", "")).await;
        let stock = id("stock-locked", "");
        data_until(browser, &stock, "data-stock", |stock| stock == 9).await;
        browser.click(&id("reset", "")).await;
        data_until(browser, &stock, "data-stock", |stock| stock == 10).await;
        answers(browser, "answers-locked", 0).await;
    })
    .await;
}

#[tokio::test]
async fn the_page_shows_the_code_of_both_lanes_and_the_command_to_paste() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        let attribute = browser.text(&id("code-attribute", "")).await;
        assert!(
            attribute.contains(r#"#[distributed_lock(key = "order:<uid>""#),
            "{attribute}"
        );
        let layer = browser.text(&id("code-layer", "")).await;
        assert!(layer.contains("LockLayer::template("), "{layer}");
        let curl = browser.text(&id("curl", "")).await;
        assert!(curl.contains(&format!("'{}/orders'", shop.url())), "{curl}");
        without_slow_payment(browser).await;
        let fast = |texts: &[String]| texts[0].contains("/orders?pay=fast");
        browser.texts_until(&id("curl", ""), fast).await;
    })
    .await;
}

//! Tests a click that has a process killed, and the request that the page sends to the other process.

use lock_tests::{Browser, RedisServer, ShopProcess, needs};

use super::{id, on_the_page};

/// Clicks the button of one way, and returns the texts of the steps when the killed process is back.
async fn kill(browser: &Browser, way: &str) -> Vec<String> {
    browser.click(&id(&format!("kill-{way}"), "")).await;
    let steps = id(&format!("killed-{way}"), " > li");
    let ended = |texts: &[String]| {
        texts
            .last()
            .is_some_and(|text| text.contains("has been started again"))
    };
    browser.texts_until(&steps, ended).await
}

#[tokio::test]
async fn a_killed_process_charges_twice_with_the_answer_in_redis_and_once_in_one_commit() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let pair = crate::shop::on(&redis);
    let [survivor, victim] = pair.ports() else {
        panic!("two ports");
    };
    on_the_page(&pair, async |browser| {
        // The killed process comes back, so that each button works again.
        for _ in 0..2 {
            let steps = kill(browser, "redis").await;
            let [_, killed, _, again, charges, _] = steps.as_slice() else {
                panic!("{steps:?}");
            };
            assert!(killed.contains("No answer"), "{steps:?}");
            assert!(killed.contains(&format!(":{victim}")), "{steps:?}");
            assert!(again.contains("charged again"), "{steps:?}");
            assert!(again.contains(&format!(":{survivor}")), "{steps:?}");
            assert!(charges.contains("2 charges of"), "{steps:?}");
            assert!(charges.contains("€36.00"), "{steps:?}");

            let steps = kill(browser, "once").await;
            let [_, killed, _, again, charges, _] = steps.as_slice() else {
                panic!("{steps:?}");
            };
            assert!(killed.contains("No answer"), "{steps:?}");
            assert!(again.contains("taken"), "{steps:?}");
            assert!(charges.contains("1 charge of"), "{steps:?}");
            assert!(charges.contains("€18.00"), "{steps:?}");
        }
        let code = browser.text(&id("code-charges", "")).await;
        assert!(code.contains("once.begin().await"), "{code}");
    })
    .await;
}

#[tokio::test]
async fn the_page_of_one_process_has_no_button_that_kills_it() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        let section = browser.element(&id("killed", "")).await;
        assert!(!section.is_displayed().await.expect("an answer"));
    })
    .await;
}

//! Tests a click whose answer is lost on its way, and the request that the page sends again.

use lock_tests::{Browser, RedisServer, ShopProcess, needs};

use super::{id, on_the_page, without_slow_payment};

/// Loses an answer of the lane, and returns the texts of the steps.
async fn lose(browser: &Browser, lane: &str) -> Vec<String> {
    browser.click(&id(&format!("lose-{lane}"), "")).await;
    let steps = id(&format!("lost-{lane}"), " > li");
    let ended = |texts: &[String]| {
        texts
            .last()
            .is_some_and(|text| text.contains("The shop has"))
    };
    browser.texts_until(&steps, ended).await
}

#[tokio::test]
async fn a_click_whose_answer_is_lost_is_sent_again_and_gets_the_same_order() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        let steps = lose(browser, "locked").await;
        let [_, lost, _, again, orders] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        assert!(lost.contains("No answer"), "{steps:?}");
        assert!(again.contains("Order 1 placed"), "{steps:?}");
        assert!(again.contains("Idempotency-Replayed"), "{steps:?}");
        assert!(orders.contains("1 order of"), "{steps:?}");
    })
    .await;
}

#[tokio::test]
async fn without_the_kit_the_request_that_is_sent_again_places_a_second_order() {
    needs!(browser);
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        without_slow_payment(browser).await;
        let steps = lose(browser, "plain").await;
        assert!(steps[1].contains("No answer"), "{steps:?}");
        assert!(steps[3].contains("Order 2 placed"), "{steps:?}");
        assert!(steps[4].contains("2 orders of"), "{steps:?}");
    })
    .await;
}

#[tokio::test]
async fn the_other_process_of_a_pair_has_the_lost_answer_too() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let pair = crate::shop::on(&redis);
    on_the_page(&pair, async |browser| {
        without_slow_payment(browser).await;
        let steps = lose(browser, "locked").await;
        assert!(steps[3].contains("Order 1 placed"), "{steps:?}");
        assert!(steps[3].contains("Idempotency-Replayed"), "{steps:?}");
        let port = |text: &str| {
            pair.ports()
                .iter()
                .position(|port| text.contains(&format!(":{port}")))
        };
        assert_ne!(port(&steps[1]), port(&steps[3]), "{steps:?}");
    })
    .await;
}

//! Tests the panel with the other kinds of locks: two keys, permits, readers and a writer.

use lock_tests::{Browser, RedisServer, ShopProcess, needs};

use super::{id, on_the_page};

/// Clicks a button of the panel, and returns its lines as soon as there are `count` of them.
async fn lines(browser: &Browser, button: &str, count: usize) -> Vec<String> {
    browser.click(&id(button, "")).await;
    let lines = id(&format!("use-{button}"), " > li");
    browser
        .texts_until(&lines, |lines| lines.len() == count)
        .await
}

fn count(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

async fn every_button_shows_its_lock(shop: &ShopProcess) {
    on_the_page(shop, async |browser| {
        let transfers = lines(browser, "transfers", 3).await;
        assert_eq!(count(&transfers[..2], "moved."), 2, "{transfers:?}");
        assert!(transfers[2].contains("blue €103.00"), "{transfers:?}");
        assert!(
            transfers[2].contains("The sum is €300.00."),
            "{transfers:?}"
        );

        let exports = lines(browser, "exports", 6).await;
        assert_eq!(count(&exports, "200: exported."), 5, "{exports:?}");
        assert_eq!(
            count(&exports, "429: refused with lock_full."),
            1,
            "{exports:?}"
        );

        let catalogue = lines(browser, "catalogue", 5).await;
        let (old, new) = ("mug €18.00, lamp €64.00", "mug €19.00, lamp €65.00");
        assert_eq!(count(&catalogue, "Read in"), 4, "{catalogue:?}");
        assert_eq!(count(&catalogue, "Changed in"), 1, "{catalogue:?}");
        assert_eq!(
            count(&catalogue, old) + count(&catalogue, new),
            5,
            "{catalogue:?}"
        );

        for (sample, words) in [
            ("transfer", "keys = [\"card:<transfer.from>\""),
            ("permits", ".permits(5)"),
            ("catalogue", "mode = read"),
        ] {
            let code = browser.text(&id(&format!("code-{sample}"), "")).await;
            assert!(code.contains(words), "{code}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_page_shows_two_keys_permits_and_readers_beside_a_writer() {
    needs!(browser);
    every_button_shows_its_lock(&ShopProcess::start()).await;
}

#[tokio::test]
async fn the_page_of_a_pair_shows_them_over_both_processes() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    every_button_shows_its_lock(&crate::shop::on(&redis)).await;
}

//! Tests how the pages of the example console are laid out, on a desktop and on a phone.

use lock_core::{LockManager, Wait};
use lock_tests::{Browser, RedisServer, needs, wait};

use super::console::{held, on_the_page};
use super::id;
use crate::console::Console;

/// The widths of a desktop's and a phone's window in pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// Evaluates a condition on the page.
async fn is_true(browser: &Browser, condition: &str) -> bool {
    let script = format!("return {condition}");
    let answer = browser.client().execute(&script, Vec::new()).await;
    answer.expect("the browser's answer") == true
}

/// Checks one page in one width.
async fn check(browser: &Browser, page: &str) {
    assert_eq!(browser.count("h1").await, 1, "{page}");
    let in_one_line = "(([field, button]) => field.top < button.bottom && button.top < field.bottom \
         && field.right <= button.left)(['#q', '[role=search] button'] \
         .map(css => document.querySelector(css).getBoundingClientRect()))";
    assert!(is_true(browser, in_one_line).await, "{page}: the search");
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    assert!(is_true(browser, fits).await, "{page}: it scrolls sideways");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_page_has_one_heading_and_its_search_in_one_line_and_fits_a_phone() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let long = format!("submit:{}", "0123456789abcdef".repeat(60));
    let guard = held(&redis, "a-label-without-a-space-".repeat(5).as_str(), &long).await;
    let console = Console::start(&redis);
    on_the_page(&console, async |browser| {
        for width in WIDTHS {
            browser.resize(width).await;
            let pages = ["/", "/?q=none*", "/lock?key=none", "/lock?key="];
            for page in pages {
                browser.open(&format!("{}{page}", console.url())).await;
                check(browser, &format!("{page} at {width}")).await;
            }
            browser.open(console.url()).await;
            browser.click(&id("locks", " h2 a")).await;
            browser.element(&id("lock", "")).await;
            check(browser, &format!("the lock at {width}")).await;
            browser.click(&id("free", "")).await;
            browser.element(&id("loses", "")).await;
            check(browser, &format!("the confirmation at {width}")).await;
        }
    })
    .await;
    guard.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_card_names_the_holder_and_the_waiters() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let guard = held(&redis, "checkout", "order:42").await;
    let waits = LockManager::builder(&redis.url()).label("billing");
    let waits = waits.connect().await.expect("a manager");
    let waiter = tokio::spawn(waits.lock("order:42").wait(Wait::Forever).acquire());
    let console = Console::start(&redis);
    on_the_page(&console, async |browser| {
        for width in WIDTHS {
            browser.resize(width).await;
            wait::eventually("the first card names both", async || {
                browser.open(console.url()).await;
                let card = id("locks", " > li:first-child ");
                let holder = browser.texts(&format!("{card}{}", id("holder", ""))).await;
                let queue = browser.texts(&format!("{card}{}", id("waiters", ""))).await;
                holder.concat().contains("checkout") && queue.concat().contains("billing")
            })
            .await;
        }
    })
    .await;
    guard.release().await.expect("held");
    let next = waiter.await.expect("no panic").expect("the lock");
    next.release().await.expect("held");
}

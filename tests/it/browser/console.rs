//! Tests the page of the example console, by what an operator sees and clicks.

use std::time::Duration;

use lock_core::{LockGuard, LockKey, LockManager};
use lock_tests::{Browser, RedisServer, needs};
use tokio::time::timeout;

use super::{id, watch};
use crate::console::Console;
use crate::steps::long;

/// A key that is HTML.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&order";

pub(super) async fn held(redis: &RedisServer, label: &str, key: &str) -> LockGuard {
    let locks = LockManager::builder(&redis.url()).label(label);
    let locks = locks.connect().await.expect("a manager");
    let request = locks.lock(LockKey::exact(key)).ttl(long());
    request.acquire().await.expect("free")
}

/// Opens the console, and runs `test`. The page must have no errors.
pub(super) async fn on_the_page(console: &Console, test: impl AsyncFnOnce(&Browser)) {
    Browser::session(async |browser| {
        watch::errors(browser).await;
        browser.open(console.url()).await;
        test(browser).await;
        assert_eq!(watch::errors_so_far(browser).await, Vec::<String>::new());
    })
    .await;
}

async fn typed(browser: &Browser, css: &str, text: &str) {
    let field = browser.element(css).await;
    field.send_keys(text).await.expect("a field");
}

pub(super) fn has(part: &str) -> impl Fn(&[String]) -> bool {
    move |texts| texts.iter().any(|text| text.contains(part))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_finds_a_lock_and_frees_it_after_seeing_who_loses_it() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let guard = held(&redis, "checkout", "order:42").await;
    let other = held(&redis, "imports", "import:7").await;
    let console = Console::start(&redis);
    on_the_page(&console, async |browser| {
        let rows = browser
            .texts_until(&id("locks", " > li"), |rows| rows.len() == 2)
            .await;
        assert!(
            rows[0].contains("import:7") && rows[0].contains("imports"),
            "{rows:?}"
        );
        for part in [
            "order:42",
            "held",
            "checkout",
            &guard.fencing_token().to_string(),
        ] {
            assert!(rows[1].contains(part), "{part}: {rows:?}");
        }
        typed(browser, "#q", "order:42\n").await;
        let seen = browser
            .texts_until(&id("holder", ""), has("checkout"))
            .await;
        assert!(
            seen[0].contains(&format!("process {}", std::process::id())),
            "{seen:?}"
        );
        browser.click(&id("free", "")).await;
        let loses = browser.texts_until(&id("loses", ""), has("checkout")).await;
        assert!(
            loses[0].contains(&guard.fencing_token().to_string()),
            "{loses:?}"
        );
        assert!(guard.is_valid(), "so far it is a question");
        // Without a reason the browser does not send the form.
        browser.click(&id("confirm", "")).await;
        assert!(guard.is_valid());
        typed(browser, &id("reason", ""), "it hangs").await;
        browser.click(&id("confirm", "")).await;
        browser
            .texts_until(&id("outcome", ""), has("was told"))
            .await;
        let lost = timeout(Duration::from_secs(8), guard.lost()).await;
        lost.expect("long before the first renewal");
        assert!(other.is_valid());
    })
    .await;
    other.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_html_is_shown_as_text_and_can_be_freed() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let guard = held(&redis, "<b>bold</b>", HOSTILE).await;
    let console = Console::start(&redis);
    on_the_page(&console, async |browser| {
        let link = id("locks", " h2 a");
        browser.texts_until(&link, has(HOSTILE)).await;
        browser
            .texts_until(&id("locks", " > li"), has("<b>bold</b>"))
            .await;
        browser.click(&link).await;
        browser.texts_until(&id("lock", " h1"), has(HOSTILE)).await;
        browser.click(&id("free", "")).await;
        browser.texts_until(&id("key", ""), has(HOSTILE)).await;
        typed(browser, &id("reason", ""), "it hangs").await;
        browser.click(&id("confirm", "")).await;
        browser
            .texts_until(&id("outcome", ""), has("was told"))
            .await;
        assert_eq!(browser.count("img").await, 0);
    })
    .await;
    let lost = timeout(Duration::from_secs(8), guard.lost()).await;
    lost.expect("long before the first renewal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_follows_the_locks_while_its_box_is_ticked() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let console = Console::start(&redis);
    on_the_page(&console, async |browser| {
        browser.texts_until(&id("count", ""), has("0 locks")).await;
        browser.click("#follow").await;
        let guard = held(&redis, "checkout", "order:42").await;
        browser
            .texts_until(&id("locks", " > li"), has("order:42"))
            .await;
        browser.texts_until(&id("count", ""), has("1 lock")).await;
        guard.release().await.expect("held");
        browser
            .texts_until(&id("locks", " > li"), |rows| rows.is_empty())
            .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_another_site_cannot_free_a_lock() {
    needs!(redis);
    needs!(browser);
    let redis = RedisServer::start();
    let guard = held(&redis, "checkout", "k").await;
    let console = Console::start(&redis);
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let seen = locks.operator("ops@example").inspect("k").await;
    let holder = seen.expect("an answer").holders()[0].id();
    Browser::session(async |browser| {
        let page = format!(
            "data:text/html,<form method=post action='{}/free'><input name=key value=k>\
             <input name=holder value={holder}><input name=reason value=evil><button>x</button></form>",
            console.url()
        );
        browser.open(&page).await;
        browser.click("button").await;
        browser.texts_until("body", has("Only a page of this console")).await;
    })
    .await;
    assert!(guard.is_valid());
    guard.release().await.expect("still held");
}

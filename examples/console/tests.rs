//! Tests the page without a browser, by requests as browsers and other clients send them.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use lock_core::{LockGuard, LockManager};
use tower::ServiceExt;

use crate::config::{Command, parse};
use crate::html::{Html, in_address};
use crate::origin::Hosts;
use crate::{web, words};

const HOST: &str = "127.0.0.1:3100";
/// A key that is HTML, a path and an address at once.
const HOSTILE: &str = "<script>alert(1)</script>\"'&/../?q=%41 ü";

fn page(locks: &LockManager) -> Router {
    let listen = HOST.parse().expect("an address");
    let hosts = Hosts::new(listen, Some("locks.example"));
    web::router(locks.operator("ops@example"), hosts)
}

fn request(method: Method, address: &str, headers: &[(&str, &str)], body: String) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(address);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header(header::HOST, HOST);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(body))
        .expect("a request")
}

async fn sent(page: &Router, request: Request<Body>) -> Response {
    page.clone().oneshot(request).await.expect("infallible")
}

async fn got(page: &Router, address: &str) -> (StatusCode, String) {
    let answer = sent(page, request(Method::GET, address, &[], String::new())).await;
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

async fn held(locks: &LockManager, key: &str) -> LockGuard {
    let request = locks.lock(lock_core::LockKey::exact(key));
    request.acquire().await.expect("free")
}

/// Returns the form that frees the only lock of a key.
async fn form(locks: &LockManager, key: &str) -> String {
    let operator = locks.operator("ops@example");
    let seen = operator.inspect(lock_core::LockKey::exact(key)).await;
    let holder = seen.expect("an answer").holders()[0].id();
    let key = in_address(key);
    format!("key={key}&holder={holder}&reason=it+hangs")
}

#[tokio::test]
async fn keys_and_labels_of_others_are_text() {
    let name = "<img src=x onerror=alert(1)>\u{202e}";
    let locks = LockManager::builder("memory:").label(name);
    let locks = locks.connect().await.expect("a manager");
    let guard = held(&locks, HOSTILE).await;
    let page = page(&locks);
    let key = in_address(HOSTILE);
    let holder = form(&locks, HOSTILE).await;
    let holder = holder.split('&').nth(1).expect("a holder");
    for address in [
        "/".to_owned(),
        format!("/?q=*{key}"),
        format!("/lock?key={key}"),
        format!("/free?key={key}&{holder}"),
    ] {
        let (status, html) = got(&page, &address).await;
        assert_eq!(status, StatusCode::OK);
        assert!(!html.contains("<script>alert"), "{html}");
        assert!(
            !html.contains("<img") && !html.contains('\u{202e}'),
            "{html}"
        );
        assert!(html.contains("&lt;script&gt;"), "{html}");
    }
    let (status, _) = got(&page, "/lock?key=").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    guard.release().await.expect("held");
}

#[tokio::test]
async fn only_a_page_of_the_console_may_free_a_lock() {
    let locks = LockManager::in_memory();
    let guard = held(&locks, "k").await;
    let page = page(&locks);
    let form = form(&locks, "k").await;
    for headers in [
        &[][..],
        &[
            ("sec-fetch-site", "cross-site"),
            ("origin", "http://127.0.0.1:3100"),
        ],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1:3100.evil.example")],
        &[("origin", "http://localhost:3100")],
        &[
            ("host", "evil.example:3100"),
            ("sec-fetch-site", "same-origin"),
        ],
    ] {
        let order = request(Method::POST, "/free", headers, form.clone());
        let refused = sent(&page, order).await.status();
        assert!(refused.is_client_error(), "{headers:?}: {refused}");
        assert!(guard.is_valid(), "{headers:?}");
    }
    let look = request(Method::GET, "/free?key=k&holder=x", &[], String::new());
    assert_eq!(sent(&page, look).await.status(), StatusCode::SEE_OTHER);
    assert!(guard.is_valid(), "a link frees nothing");
    for headers in [
        &[("sec-fetch-site", "same-origin")][..],
        &[("origin", "http://127.0.0.1:3100")],
    ] {
        let order = request(Method::POST, "/free", headers, form.clone());
        let freed = sent(&page, order).await;
        assert_eq!(freed.status(), StatusCode::SEE_OTHER);
    }
    let lost = tokio::time::timeout(Duration::from_secs(8), guard.lost());
    lost.await.expect("freed");
}

#[tokio::test]
async fn the_name_of_another_site_reads_nothing() {
    let locks = LockManager::in_memory();
    let page = page(&locks);
    for (host, answered) in [
        (HOST, true),
        ("localhost:3100", true),
        ("[::1]:3100", true),
        ("LOCKS.example", true),
        ("evil.example:3100", false),
        ("127.0.0.1:9", false),
        ("127.0.0.1", false),
    ] {
        let look = request(Method::GET, "/", &[("host", host)], String::new());
        assert_eq!(
            sent(&page, look).await.status().is_success(),
            answered,
            "{host}"
        );
    }
}

#[tokio::test]
async fn an_order_for_a_holder_that_has_changed_frees_nothing() {
    let locks = LockManager::in_memory();
    let page = page(&locks);
    let guard = held(&locks, "k").await;
    let form = form(&locks, "k").await;
    guard.release().await.expect("held");
    let successor = held(&locks, "k").await;
    let headers = [("sec-fetch-site", "same-origin")];
    let answer = sent(&page, request(Method::POST, "/free", &headers, form)).await;
    let address = &answer.headers()[header::LOCATION];
    assert_eq!(address, "/lock?key=k&said=changed");
    assert!(successor.is_valid());
    successor.release().await.expect("held");
}

#[tokio::test]
async fn each_answer_forbids_scripts_of_others_and_frames() {
    let page = page(&LockManager::in_memory());
    for address in ["/", "/lock?key=k", "/style.css", "/page.js", "/nowhere"] {
        let answer = sent(&page, request(Method::GET, address, &[], String::new())).await;
        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str();
        let policy = policy.expect("text");
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}

#[test]
fn the_page_has_the_colours_of_the_shops_page() {
    let colours = |css: &'static str| css.split_once("\n* {").expect("the rules below").0;
    let shop = include_str!("../shop/page/style.css");
    assert_eq!(colours(include_str!("style.css")), colours(shop));
}

#[test]
fn texts_are_escaped_and_times_have_two_units() {
    let mut html = Html::new();
    html.text("<a href='\"&'>\u{7}");
    let html = html.into_string();
    assert_eq!(html, "&lt;a href=&#39;&quot;&amp;&#39;&gt;\\u{7}");
    assert_eq!(in_address("a/ü?&"), "a%2F%C3%BC%3F%26");
    for (seconds, text) in [
        (0, "0 ms"),
        (59, "59 s"),
        (125, "2 min 5 s"),
        (7_260, "2 h 1 min"),
    ] {
        assert_eq!(words::time(Duration::from_secs(seconds)), text);
    }
}

#[test]
fn the_command_line_says_what_is_wrong() {
    let parsed = |line: &str| {
        let words = line.split_whitespace().map(str::to_owned);
        parse(words, |_| None)
    };
    assert_eq!(parsed("").expect("right").command, Command::Serve);
    assert!(parsed("").expect("right").listen.ip().is_loopback());
    assert_eq!(
        parsed("list").expect("right").command,
        Command::List("*".into())
    );
    assert!(parsed("force k stuck --yes --holder 7").is_ok());
    for (line, why) in [
        ("force k", "reason"),
        ("inspect", "key"),
        ("inspect a b", "key"),
        ("list --yes", "belong to force"),
        ("free k", "no command free"),
        ("force k a b", "too much"),
        ("--holder", "needs an id"),
        ("--nonsense", "no option"),
    ] {
        let error = parsed(line).expect_err("wrong").to_string();
        assert!(error.contains(why), "{line}: {error}");
    }
}

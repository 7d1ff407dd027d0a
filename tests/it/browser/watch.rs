//! Records events that a test would miss between two looks at the page.
//!
//! Such events are silent errors, and texts that are visible for a moment only.

use http::Method;
use lock_tests::browser::fantoccini::wd::WebDriverCompatibleCommand;
use lock_tests::{Browser, wait};
use serde_json::{Value, json};
use url::{ParseError, Url};

/// A script that runs in every new document before the page's own scripts.
const LISTEN: &str = "
    window.errorsSeen = [];
    const seen = (kind, what) => window.errorsSeen.push(`${kind}: ${what}`);
    addEventListener('error', event =>
        seen('error', event.message ?? `${event.target.src ?? event.target.href} did not load`), true);
    addEventListener('unhandledrejection', event => seen('rejection', event.reason));
    addEventListener('securitypolicyviolation', event => seen('policy', event.blockedURI));
    for (const level of ['error', 'warn', 'assert']) {
        const original = console[level];
        console[level] = (...words) => { seen(level, words.join(' ')); original(...words); };
    }
    // By default the list of requests ends after 250 entries.
    performance.setResourceTimingBufferSize(100000);
";

/// A script that keeps every text that an element with this selector shows from now on.
const KEEP: &str = "
    const [css] = arguments;
    const texts = (window.textsSeen ??= {})[css] = [];
    const look = () => document.querySelectorAll(css).forEach(element => {
        const text = element.checkVisibility() ? element.innerText : '';
        if (!texts.includes(text)) texts.push(text);
    });
    look();
    new MutationObserver(look).observe(document.body, { childList: true, characterData: true, subtree: true });
";

/// Makes the browser keep all errors of pages that are opened from now on.
pub(super) async fn errors(browser: &Browser) {
    let command = DevTools {
        name: "Page.addScriptToEvaluateOnNewDocument",
        parameters: json!({ "source": LISTEN }),
    };
    let issued = browser.client().issue_cmd(command).await;
    issued.expect("a Chromium");
}

pub(super) async fn errors_so_far(browser: &Browser) -> Vec<String> {
    let seen = execute(browser, "return window.errorsSeen", []).await;
    serde_json::from_value(seen).expect("the list set up before the page")
}

/// Checks that the page has loaded and sent everything from and to these ports of this machine.
pub(super) async fn only_asked(browser: &Browser, ports: &[u16]) {
    let script = "return performance.getEntries().map(entry => entry.name)
        .filter(name => name.includes(':'))";
    let asked = execute(browser, script, []).await;
    let asked: Vec<String> = serde_json::from_value(asked).expect("names");
    // The entries are the page, its style, its five scripts, stock, orders and locks.
    assert!(asked.len() >= 10, "{asked:?}");
    for url in asked {
        let of_shop = |port: &u16| url.starts_with(&format!("http://127.0.0.1:{port}/"));
        assert!(ports.iter().any(of_shop), "{url} is not the shop's");
    }
}

/// Makes the page keep all texts that such elements show from now on, even for a moment.
pub(super) async fn texts(browser: &Browser, css: &str) {
    execute(browser, KEEP, [css]).await;
}

/// Waits until `wanted` accepts one of the texts that the page keeps.
pub(super) async fn seen(browser: &Browser, css: &str, wanted: impl Fn(&str) -> bool) {
    wait::eventually(&format!("{css} has shown the expected text"), async || {
        has_seen(browser, css, &wanted).await
    })
    .await;
}

/// Returns whether `wanted` accepts one of the texts that the page keeps so far.
pub(super) async fn has_seen(browser: &Browser, css: &str, wanted: impl Fn(&str) -> bool) -> bool {
    let kept = execute(browser, "return textsSeen[arguments[0]]", [css]).await;
    let kept: Vec<String> = serde_json::from_value(kept).expect("the list set up before");
    kept.iter().any(|text| wanted(text))
}

async fn execute<const N: usize>(browser: &Browser, script: &str, arguments: [&str; N]) -> Value {
    let arguments = arguments.map(Value::from).to_vec();
    let answer = browser.client().execute(script, arguments).await;
    answer.expect("the browser's answer")
}

/// A command for the browser itself, which its driver passes on.
#[derive(Debug)]
struct DevTools {
    name: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        let session = session.unwrap_or_default();
        base.join(&format!("session/{session}/goog/cdp/execute"))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        let body = json!({ "cmd": self.name, "params": self.parameters });
        (Method::POST, Some(body.to_string()))
    }
}

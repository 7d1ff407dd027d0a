//! What goes wrong in a page without a word on the screen.

use http::Method;
use lock_tests::Browser;
use lock_tests::browser::fantoccini::wd::WebDriverCompatibleCommand;
use serde_json::{Value, json};
use url::{ParseError, Url};

/// Runs in every new document before the page's own scripts.
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
    // The list of what was asked for is kept whole: by itself it ends after 250 entries.
    performance.setResourceTimingBufferSize(100000);
";

/// Has the browser keep all errors of pages that are opened from now on.
pub(super) async fn errors(browser: &Browser) {
    let command = DevTools {
        name: "Page.addScriptToEvaluateOnNewDocument",
        parameters: json!({ "source": LISTEN }),
    };
    let issued = browser.client().issue_cmd(command).await;
    issued.expect("a Chromium");
}

pub(super) async fn errors_so_far(browser: &Browser) -> Vec<String> {
    let seen = execute(browser, "return window.errorsSeen").await;
    serde_json::from_value(seen).expect("the list set up before the page")
}

/// Everything that the page has loaded and sent went to one of these ports of this machine.
pub(super) async fn only_asked(browser: &Browser, ports: &[u16]) {
    let script = "return performance.getEntries().map(entry => entry.name)
        .filter(name => name.includes(':'))";
    let asked = execute(browser, script).await;
    let asked: Vec<String> = serde_json::from_value(asked).expect("names");
    // The page, its style, its five scripts, stock, orders and locks.
    assert!(asked.len() >= 10, "{asked:?}");
    for url in asked {
        let of_shop = |port: &u16| url.starts_with(&format!("http://127.0.0.1:{port}/"));
        assert!(ports.iter().any(of_shop), "{url} is not the shop's");
    }
}

async fn execute(browser: &Browser, script: &str) -> Value {
    let answer = browser.client().execute(script, Vec::new()).await;
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

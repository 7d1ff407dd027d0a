//! Serves the page: the files of this folder, with the shop's settings and source inserted.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::json;

use crate::app::Shop;
use crate::checkout;

const HTML: &str = include_str!("page/index.html");

/// The sources of the page's code samples, each a marked region of a compiled file.
const SAMPLES: [(&str, &str); 10] = [
    ("plain", include_str!("plain.rs")),
    ("attribute", include_str!("orders.rs")),
    ("layer", include_str!("app.rs")),
    ("replay", include_str!("app.rs")),
    ("night", include_str!("nights.rs")),
    ("transfer", include_str!("transfers.rs")),
    ("permits", include_str!("app.rs")),
    ("catalogue", include_str!("catalogue.rs")),
    ("charges", include_str!("charges.rs")),
    ("body", include_str!("checkout.rs")),
];

pub(crate) fn routes() -> Router<Shop> {
    let script = |text: &'static str| {
        get(move || async move { typed("text/javascript; charset=utf-8", text) })
    };
    Router::new()
        .route("/", get(index))
        .route(
            "/page/style.css",
            get(|| async { typed("text/css; charset=utf-8", include_str!("page/style.css")) }),
        )
        .route("/page/app.js", script(include_str!("page/app.js")))
        .route("/page/answers.js", script(include_str!("page/answers.js")))
        .route("/page/servers.js", script(include_str!("page/servers.js")))
        .route("/page/kinds.js", script(include_str!("page/kinds.js")))
        .route("/page/lost.js", script(include_str!("page/lost.js")))
        .route("/page/killed.js", script(include_str!("page/killed.js")))
        .route("/page/state.js", script(include_str!("page/state.js")))
        .route("/page/code.js", script(include_str!("page/code.js")))
        .route(
            "/favicon.ico",
            get(|| async { typed("image/svg+xml", include_str!("page/icon.svg")) }),
        )
}

async fn index(State(shop): State<Shop>) -> impl IntoResponse {
    let settings = json!({
        "store": &*shop.store,
        "peer": shop.peer.get(),
        "slow_ms": checkout::AUTHORISE.as_millis(),
        "day_s": shop.day.as_secs(),
    });
    // The escape keeps a `<` inside a JSON string from ending the script element.
    let mut html = HTML.replace(
        "{{settings}}",
        &settings.to_string().replace('<', "\\u003c"),
    );
    for (name, source) in SAMPLES {
        html = html.replace(
            &format!("{{{{code:{name}}}}}"),
            &escaped(&region(source, name)),
        );
    }
    typed("text/html; charset=utf-8", html)
}

fn typed(kind: &'static str, body: impl IntoResponse) -> impl IntoResponse {
    (
        [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        body,
    )
}

/// Returns the lines between the two markers, moved to the left edge.
fn region(source: &str, name: &str) -> String {
    let (begin, end) = (
        format!("// page: begin {name}"),
        format!("// page: end {name}"),
    );
    let lines: Vec<_> = source
        .lines()
        .skip_while(|line| line.trim() != begin)
        .skip(1)
        .take_while(|line| line.trim() != end)
        .collect();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(indent)
        .min()
        .unwrap_or(0);
    lines
        .iter()
        .map(|line| line.get(least..).unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{HTML, SAMPLES, escaped, region};

    #[test]
    fn every_sample_is_in_the_source_and_on_the_page() {
        for (name, source) in SAMPLES {
            assert!(
                region(source, name).lines().count() >= 4,
                "the region {name:?} is missing"
            );
            assert!(
                HTML.contains(&format!("{{{{code:{name}}}}}")),
                "the page does not show {name:?}"
            );
        }
        assert_eq!(
            HTML.matches("{{").count(),
            SAMPLES.len() + 1,
            "a placeholder is left unfilled"
        );
    }

    #[test]
    fn the_samples_show_the_attribute_and_the_layer() {
        assert!(
            region(SAMPLES[1].1, "attribute")
                .starts_with("#[distributed_lock(key = \"order:<uid>\"")
        );
        assert!(region(SAMPLES[2].1, "layer").contains("LockLayer::template("));
    }

    #[test]
    fn a_region_is_cut_and_moved_to_the_left_edge() {
        let source = "x\n    // page: begin a\n    one\n\n      two\n    // page: end a\ny";
        assert_eq!(region(source, "a"), "one\n\n  two");
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
    }
}

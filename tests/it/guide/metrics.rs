//! Tests that code, documentation and dashboard name the same metrics.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Value;

use super::page;

/// The pages whose tables list the metrics.
const DOCUMENTED: [&str; 2] = [
    "lock-core/src/docs/guide/observing.md",
    "lock-tower/src/layer/operations.rs",
];
/// The files that record the metrics.
const RECORDED: [&str; 2] = [
    "lock-core/src/base/telemetry.rs",
    "lock-tower/src/telemetry/mod.rs",
];
const DASHBOARD: &str = "examples/shop/grafana.json";
const KINDS: [&str; 3] = ["counter", "gauge", "histogram"];

/// Returns the kind of each metric in the tables: `| name | kind… | labels |`.
fn documented() -> BTreeMap<String, &'static str> {
    let mut metrics = BTreeMap::new();
    for page in DOCUMENTED.map(page) {
        for line in page.lines() {
            let row = line.trim_start_matches(['/', ' ']);
            let Some((name, rest)) = row.strip_prefix("| `").and_then(|row| row.split_once('`'))
            else {
                continue;
            };
            let column = rest.split('|').nth(1).unwrap_or_default().trim();
            if let Some(kind) = KINDS.into_iter().find(|kind| column.starts_with(kind)) {
                metrics.insert(name.to_owned(), kind);
            }
        }
    }
    metrics
}

/// Returns the kind of each metric in the code: `metrics::kind!("name"…`.
fn recorded() -> BTreeMap<String, &'static str> {
    let mut metrics = BTreeMap::new();
    for source in RECORDED.map(page) {
        for kind in KINDS {
            for call in source.split(&format!("metrics::{kind}!(")).skip(1) {
                let name = call.split('"').nth(1).expect("a name");
                metrics.insert(name.to_owned(), kind);
            }
        }
    }
    metrics
}

/// Returns the queries of the dashboard, those of its variables included.
fn queries() -> Vec<String> {
    fn collect(value: &Value, queries: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(text) if name == "expr" || name == "query" => {
                            queries.push(text.clone());
                        }
                        value => collect(value, queries),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, queries)),
            _ => {}
        }
    }
    let dashboard = serde_json::from_str(&page(DASHBOARD)).expect("JSON");
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    queries
}

/// Returns the names of series in a query that begin as our metrics do.
fn series(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("lock_"))
}

/// Returns the metric of a series. Only a histogram has series of other names.
fn metric<'a>(series: &'a str, metrics: &BTreeMap<String, &str>) -> Option<&'a str> {
    let ends = ["_bucket", "_sum", "_count"];
    let base = ends.iter().find_map(|end| series.strip_suffix(end));
    let (name, is_histogram) = match base {
        Some(base) => (base, true),
        None => (series, false),
    };
    let kind = metrics.get(name)?;
    (is_histogram == (*kind == "histogram")).then_some(name)
}

#[test]
fn the_metrics_of_the_code_are_the_documented_ones() {
    assert_eq!(recorded(), documented());
    assert!(documented().len() >= 15, "{:#?}", documented());
}

#[test]
fn the_dashboard_asks_for_documented_metrics_and_for_each_of_them() {
    let metrics = documented();
    let mut shown = BTreeSet::new();
    for query in queries() {
        for series in series(&query) {
            let metric = metric(series, &metrics);
            let metric = metric.unwrap_or_else(|| panic!("{series} is no series, in {query}"));
            shown.insert(metric.to_owned());
        }
    }
    let all: BTreeSet<String> = metrics.into_keys().collect();
    assert_eq!(shown, all);
}

#[test]
fn the_buckets_of_the_page_are_those_of_the_shop() {
    let observing = page(DOCUMENTED[0]);
    let block = observing
        .split("```rust,ignore")
        .nth(1)
        .expect("the buckets");
    let lines: Vec<_> = block
        .split("```")
        .next()
        .expect("its end")
        .lines()
        .collect();
    assert!(lines.len() > 8);
    let shop = page("examples/shop/metrics.rs");
    for line in lines
        .into_iter()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        assert!(shop.contains(line), "the shop lacks: {line}");
    }
}

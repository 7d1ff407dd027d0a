//! Checks the tests and the seeded faults that the page about guarantees names.

use std::collections::BTreeSet;

use lock_tests::faults;

use super::{page, repository};
use crate::covered::{cases, named, tests_in};

const PAGE: &str = "lock-core/src/docs/guide/guarantees.md";

#[test]
fn every_test_that_shows_a_promise_exists() {
    let one_server = include_str!("../conformance/one_server_a_key.rs");
    let conformance = cases().into_iter().chain(listed(one_server));
    let within = |place: &'static str| move |name: String| format!("{place}::{name}");
    let all: BTreeSet<_> = conformance
        .map(within("conformance"))
        .chain(tests_in("tests/it"))
        .chain(unit_tests().map(within("lock_core")))
        .collect();
    let named = named(&page(PAGE));
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(!named.is_empty() && missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_seeded_fault_that_shows_a_promise_exists() {
    let rows = faults::read(&repository()).expect("rows");
    let rows: BTreeSet<_> = rows.into_iter().map(|fault| fault.name).collect();
    let page = page(PAGE);
    let seeded = page.split("Seeded:").skip(1);
    // The names end with the item of the list.
    let seeded = seeded.filter_map(|rest| rest.split("\n*").next()?.split("\n\n").next());
    let named: BTreeSet<_> = seeded
        .flat_map(|names| names.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect();
    let missing: Vec<_> = named.difference(&rows).collect();
    assert!(!named.is_empty() && missing.is_empty(), "{missing:#?}");
}

/// Returns the cases of a list, as `theme::case`.
fn listed(list: &str) -> Vec<String> {
    let mut theme = "";
    let mut cases = Vec::new();
    for line in list.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {") {
            theme = name;
        } else if let Some(case) = line.strip_suffix(',') {
            cases.push(format!("{theme}::{case}"));
        }
    }
    cases
}

/// Returns the unit tests of lock-core by their names only, because the page does not give their modules.
fn unit_tests() -> impl Iterator<Item = String> {
    let tests = tests_in("lock-core/src").into_iter();
    tests.filter_map(|test| test.rsplit("::").next().map(str::to_owned))
}

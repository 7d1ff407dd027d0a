//! Checks `covered.md` against the names of the tests.

use std::collections::BTreeSet;

use crate::covered::{named, tests_in};

/// Checks that every test that the page names exists.
#[test]
fn the_page_names_only_tests_that_exist() {
    let units = tests_in("lock-core/src");
    let units = units
        .iter()
        .filter_map(|test| Some(format!("lock_core::{}", test.rsplit("::").next()?)));
    let all: BTreeSet<_> = tests_in("tests/it").into_iter().chain(units).collect();
    let named = named(include_str!("covered.md"));
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(
        missing.is_empty(),
        "named on the page, and missing: {missing:#?}"
    );
}

//! Whether `covered.md` is true of the names.

use std::collections::BTreeSet;

use crate::covered::{named, tests_in};

/// Every test that the page names is there.
#[test]
fn the_page_names_tests_that_there_are() {
    let units = tests_in("lock-core/src");
    let units = units
        .iter()
        .filter_map(|test| Some(format!("lock_core::{}", test.rsplit("::").next()?)));
    let all: BTreeSet<_> = tests_in("tests/it").into_iter().chain(units).collect();
    let named = named(include_str!("covered.md"));
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(missing.is_empty(), "named, and not there: {missing:#?}");
}

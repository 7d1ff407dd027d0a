//! Checks `covered.md` against the names of the tests.

use crate::covered::{named, tests_in};

#[test]
fn the_page_names_only_tests_that_exist() {
    let all = tests_in("tests/it");
    let named = named(include_str!("covered.md"));
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(!named.is_empty() && missing.is_empty(), "{missing:#?}");
}

//! Whether `covered.md` is true of the names.

use crate::covered::{named, tests_in};

/// Every test that the page names is there, and every one that is there is named.
#[test]
fn the_page_names_the_tests_that_there_are() {
    let named = named(include_str!("covered.md"));
    let mut tests = tests_in("tests/it/layer");
    tests.remove("covered::the_page_names_the_tests_that_there_are");
    let differ: Vec<_> = named.symmetric_difference(&tests).collect();
    assert!(differ.is_empty(), "named or there, not both: {differ:#?}");
}

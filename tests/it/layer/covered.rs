//! Checks `covered.md` against the names of the tests.

use crate::covered::{named, tests_in};

/// Checks that the page names every test of this folder, and only tests that exist.
#[test]
fn the_page_names_exactly_the_tests_of_this_folder() {
    let named = named(include_str!("covered.md"));
    let mut tests = tests_in("tests/it/layer");
    tests.remove("covered::the_page_names_exactly_the_tests_of_this_folder");
    let differ: Vec<_> = named.symmetric_difference(&tests).collect();
    assert!(
        differ.is_empty(),
        "on the page or in the folder, but not both: {differ:#?}"
    );
}

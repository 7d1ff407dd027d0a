//! Checks `covered.md` against the names of the tests.

use std::collections::BTreeSet;

use crate::covered::{cases, named, tests_in};

fn within(place: &str, tests: BTreeSet<String>) -> impl Iterator<Item = String> {
    tests
        .into_iter()
        .map(move |test| format!("{place}::{test}"))
}

/// Returns the unit tests by their names only, because the page does not give their modules.
fn unit_tests() -> BTreeSet<String> {
    let tests = tests_in("lock-core/src");
    let name = |test: String| test.rsplit("::").next().map(str::to_owned);
    tests.into_iter().filter_map(name).collect()
}

/// Checks that every test that the page names exists, and that the page names every test of
/// this folder.
#[test]
fn the_page_names_exactly_the_tests_of_this_folder() {
    let named = named(include_str!("covered.md"));
    let mut here = tests_in("tests/it/waiting");
    here.remove("covered::the_page_names_exactly_the_tests_of_this_folder");
    let all: BTreeSet<_> = within("waiting", here.clone())
        .chain(tests_in("tests/it"))
        .chain(within("conformance", cases()))
        .chain(within("lock_core", unit_tests()))
        .collect();
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(
        missing.is_empty(),
        "named on the page, and missing: {missing:#?}"
    );
    let here: BTreeSet<_> = within("waiting", here).collect();
    let unnamed: Vec<_> = here.difference(&named).collect();
    assert!(unnamed.is_empty(), "missing on the page: {unnamed:#?}");
}

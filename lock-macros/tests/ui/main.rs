//! Tests of the errors for misuse of the macros.
//!
//! `macros` and `idempotent` contain the errors of the macros, and `compiler` and `idempotent_compiler` those of the compiler
//! in their expansion.
//! The first two lines of each case describe the mistake and the correction. `// instead: …` stands above
//! each line to replace. After a change,
//!
//! ```sh
//! OVERWRITE=1 cargo test -p lock-macros --test ui
//! ```
//!
//! rewrites the outputs, and the pages of the documentation that are made from them.

mod case;
mod compiled;
mod lints;
mod page;
mod project;
mod texts;

use case::Case;

/// Returns whether the tests rewrite the outputs and the page.
fn overwrites() -> bool {
    std::env::var_os("OVERWRITE").is_some()
}

#[test]
fn every_misuse_says_what_to_write_and_the_page_says_it_too() {
    texts::check(&Case::all(), compiled::said());
    page::check(&Case::all());
}

#[test]
fn every_misuse_is_one_error_at_its_place_and_what_to_write_instead_compiles() {
    compiled::check(&Case::all(), compiled::said());
}

#[test]
fn clippy_says_nothing_more_about_an_annotated_function_than_about_the_plain_one() {
    lints::check();
}

#[test]
fn there_are_as_many_cases_as_there_were() {
    let count = Case::all().len();
    assert!(count >= 220, "only {count} cases were found");
}

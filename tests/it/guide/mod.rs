//! Tests the pages of documentation against the repository and against real servers.
//!
//! The code blocks of the guide are doctests of lock-core.

mod fencing;
mod guarantees;
mod links;
mod metrics;
mod postgres;
mod rights;

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the repository").to_owned()
}

/// Returns the text of a file of the repository.
fn page(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the code blocks of this language.
fn blocks<'page>(page: &'page str, language: &str) -> Vec<&'page str> {
    let fence = format!("\n```{language}\n");
    let blocks = page.split(fence.as_str()).skip(1);
    let code = blocks.map(|block| block.split("\n```").next().expect("the code"));
    code.collect()
}

//! What a user reads who holds the macros wrongly: each case is one error, at the token to blame, and
//! the item is still there for its callers.

use std::{fs, path::Path};

#[test]
fn every_misuse_says_what_to_write() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

#[test]
fn every_misuse_is_one_error_and_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut seen = 0;
    for entry in fs::read_dir(folder).expect("the cases are there") {
        let path = entry.expect("the folder can be read").path();
        if path
            .extension()
            .is_none_or(|extension| extension != "stderr")
        {
            continue;
        }
        let output = fs::read_to_string(&path).expect("an output can be read");
        let errors = output
            .lines()
            .filter(|line| line.starts_with("error"))
            .count();
        let warnings = output
            .lines()
            .filter(|line| line.starts_with("warning"))
            .count();
        assert_eq!((errors, warnings), (1, 0), "{}:\n{output}", path.display());
        seen += 1;
    }
    assert!(seen >= 60, "only {seen} cases were found");
}

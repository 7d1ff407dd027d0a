//! Checks with every compiler that a mistake has one error at its place, and that the correction compiles.

use std::{fmt::Write as _, sync::LazyLock};

use serde_json::Value;

use crate::{
    case::Case,
    project::{Project, Said, primary},
};

/// The name of the program with all corrections.
const INSTEAD: &str = "instead";

/// The compiler's messages about every case. The tests that read them share one compilation.
pub(crate) fn said() -> &'static Said {
    static SAID: LazyLock<Said> = LazyLock::new(|| compile(&Case::all()));
    &SAID
}

fn compile(cases: &[Case]) -> Said {
    let mut project = Project::new("misuses");
    let mut instead = String::from(
        "#![allow(dead_code, unused_variables)]\n#![deny(warnings)]\n\nfn main() {}\n",
    );
    for case in cases {
        project.add(&case.program(), &case.source);
        let module = case.program().replace('-', "_");
        let _ = write!(instead, "\nmod {module} {{\n{}}}\n", case.fixed);
    }
    project.add(INSTEAD, &instead);
    project.run("check")
}

pub(crate) fn check(cases: &[Case], said: &Said) {
    let mut problems = String::new();
    for case in cases {
        let said = &said[&case.program()];
        if let Err(problem) = check_case(case, said) {
            let _ = writeln!(problems, "{}: {problem}\n{}", case.name, shown(said));
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(
        said[INSTEAD].is_empty(),
        "what to write instead does not compile: {}",
        shown(&said[INSTEAD])
    );
}

fn check_case(case: &Case, said: &[Value]) -> Result<(), String> {
    let [only] = said else {
        return Err(format!(
            "{} errors and warnings instead of one error",
            said.len()
        ));
    };
    if only["level"] != "error" {
        return Err("a warning instead of an error".to_owned());
    }
    let expected = case.place().0;
    let lines = primary(only).map(|span| span["line_start"].as_u64());
    let lines: Vec<usize> = lines
        .flatten()
        .filter_map(|line| usize::try_from(line).ok())
        .collect();
    if !lines.contains(&expected) {
        return Err(format!(
            "the error is at {lines:?} instead of line {expected}"
        ));
    }
    match takes_something_out(only) {
        Some(text) => Err(format!("it is suggested to take out {text}")),
        None => Ok(()),
    }
}

/// Finds a suggestion that removes text of the attribute, which the user would lose.
fn takes_something_out(said: &Value) -> Option<&Value> {
    let children = said["children"].as_array().into_iter().flatten();
    let mut suggested = children.flat_map(|child| child["spans"].as_array().into_iter().flatten());
    suggested
        .find(|span| {
            let is_attribute = span["text"][0]["text"].as_str().is_some_and(|text| {
                text.contains("#[distributed_lock") || text.contains("#[idempotent")
            });
            is_attribute
                && span["suggested_replacement"] == ""
                && span["byte_start"] != span["byte_end"]
        })
        .map(|span| &span["text"])
}

fn shown(said: &[Value]) -> String {
    said.iter()
        .filter_map(|said| said["rendered"].as_str())
        .collect()
}

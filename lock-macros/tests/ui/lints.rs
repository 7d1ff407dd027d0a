//! Checks that clippy reports nothing more about an annotated function than about the plain one.
//!
//! This includes the strictest sets of lints.
//!
//! `functions.rs` is linted twice: with its attributes and without them.

use std::{collections::BTreeSet, fs, io::Write as _, process::Command};

use serde_json::Value;

use crate::project::{Project, cargo, primary};

const LEVELS: &str = "#![warn(clippy::all, clippy::pedantic, clippy::nursery, unused)]\n";

pub(crate) fn check() {
    if !has_clippy() {
        return not_run();
    }
    let functions = include_str!("functions.rs");
    let plain = without_attributes(functions);
    for attribute in ["#[distributed_lock", "#[idempotent"] {
        assert!(
            functions.contains(attribute) && !plain.contains(attribute),
            "{plain}"
        );
    }
    let mut project = Project::new("lints");
    project.add("annotated", &format!("{LEVELS}{functions}"));
    project.add("plain", &format!("{LEVELS}{plain}"));
    let said = project.run("clippy");

    let [annotated, plain] = ["annotated", "plain"].map(|program| places(&said[program]));
    let lints: BTreeSet<&str> = plain.iter().map(|(lint, _)| lint.as_str()).collect();
    for lint in [
        "clippy::future_not_send",
        "clippy::cast_possible_truncation",
    ] {
        assert!(
            lints.contains(lint),
            "the strictest sets are not at work: {lints:?}"
        );
    }
    let more: Vec<_> = annotated.difference(&plain).collect();
    assert!(more.is_empty(), "only about annotated functions: {more:#?}");
}

/// Replaces each line of an attribute by a comment, so that every line keeps its number.
fn without_attributes(program: &str) -> String {
    let mut inside = false;
    program
        .lines()
        .map(|line| {
            let line_start = line.trim_start();
            inside |= line_start.starts_with("#[distributed_lock(")
                || line_start.starts_with("#[idempotent(");
            let kept = if inside { "//" } else { line };
            inside &= !line.trim_end().ends_with(")]");
            format!("{kept}\n")
        })
        .collect()
}

/// Returns the lints and their lines.
fn places(said: &[Value]) -> BTreeSet<(String, u64)> {
    let places = said.iter().flat_map(|said| {
        assert_eq!(said["level"], "warning", "{}", said["rendered"]);
        let lint = said["code"]["code"].as_str().unwrap_or_default();
        primary(said).filter_map(|span| Some((lint.to_owned(), span["line_start"].as_u64()?)))
    });
    places.collect()
}

fn has_clippy() -> bool {
    let version = Command::new(cargo()).args(["clippy", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// Returns the file that collects the tests that could not run, with the reasons.
fn not_run() {
    let Some(path) = std::env::var_os("LOCK_TESTS_NOT_RUN") else {
        panic!("clippy is missing: rustup component add clippy");
    };
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .expect("the list can be opened");
    writeln!(file, "lints: no clippy").expect("the list can be written");
}

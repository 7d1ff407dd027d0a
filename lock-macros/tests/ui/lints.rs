//! Checks that clippy reports nothing more about an annotated function than about the plain one.
//!
//! This includes the strictest sets of lints.
//!
//! Each file of functions is linted twice: with its attributes and without them.

use std::{collections::BTreeSet, fs, io::Write as _, process::Command};

use serde_json::Value;

use crate::project::{Project, cargo, primary};

const LEVELS: &str = "#![warn(clippy::all, clippy::pedantic, clippy::nursery, unused)]\n";

/// A file of functions, and lints that clippy reports about some of them.
struct Functions {
    name: &'static str,
    attribute: &'static str,
    text: &'static str,
    lints: &'static [&'static str],
}

const FILES: [Functions; 2] = [
    Functions {
        name: "locked",
        attribute: "#[distributed_lock",
        text: include_str!("functions.rs"),
        lints: &[
            "clippy::future_not_send",
            "clippy::cast_possible_truncation",
        ],
    },
    Functions {
        name: "idempotent",
        attribute: "#[idempotent",
        text: include_str!("idempotent_functions.rs"),
        lints: &["clippy::needless_pass_by_ref_mut"],
    },
];

pub(crate) fn check() {
    if !has_clippy() {
        return not_run();
    }
    let mut project = Project::new("lints");
    for Functions {
        name,
        attribute,
        text,
        ..
    } in FILES
    {
        let plain = without_attributes(text);
        assert!(
            text.contains(attribute) && !plain.contains(attribute),
            "{plain}"
        );
        project.add(&format!("{name}-annotated"), &format!("{LEVELS}{text}"));
        project.add(&format!("{name}-plain"), &format!("{LEVELS}{plain}"));
    }
    let said = project.run("clippy");

    for Functions { name, lints, .. } in FILES {
        let places = |how: &str| places(&said[&*format!("{name}-{how}")]);
        let (annotated, plain) = (places("annotated"), places("plain"));
        let reported: BTreeSet<&str> = plain.iter().map(|(lint, _)| lint.as_str()).collect();
        for lint in lints {
            assert!(
                reported.contains(lint),
                "the strictest sets are not at work: {reported:?}"
            );
        }
        let more: Vec<_> = annotated.difference(&plain).collect();
        assert!(more.is_empty(), "only about annotated functions: {more:#?}");
    }
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

//! Compares the whole text of each error.

use std::{
    fmt::Write as _,
    io::{Write as _, stderr},
    process::Command,
};

use serde_json::Value;

use crate::{case::Case, project::Said};

/// The compiler whose texts the cases in `compiler` hold. Other versions word them differently.
const COMPILER: &str = "1.95.0";

pub(crate) fn check(cases: &[Case], said: &Said) {
    let compiler = version();
    let compares_compiler = compiler == COMPILER;
    if !compares_compiler {
        // A passing test does not show the output of `eprintln!`.
        let _ = writeln!(
            stderr(),
            "the compiler's own texts were not compared, because they are those of Rust {COMPILER} and \
             this is {compiler}; the number of errors and their places were"
        );
    }
    let mut problems = String::new();
    for case in cases {
        if case.is_of_the_compiler() && !compares_compiler {
            continue;
        }
        let text = text(case, &said[&case.program()]);
        if text == case.output {
            continue;
        }
        if crate::overwrites() {
            case.write_output(&text);
        } else {
            let (name, output) = (&case.name, &case.output);
            let _ = writeln!(problems, "{name} says\n\n{text}\ninstead of\n\n{output}");
        }
    }
    assert!(
        problems.is_empty(),
        "{problems}\nafter a change, `OVERWRITE=1 cargo test -p lock-macros --test ui` rewrites the texts"
    );
}

/// Returns the messages as the compiler prints them, with the path of the case. Lines of other files are left
/// out, because they change while the message stays.
fn text(case: &Case, said: &[Value]) -> String {
    let rendered = said.iter().filter_map(|said| said["rendered"].as_str());
    let rendered: String = rendered.collect();
    let rendered = rendered.replace(
        &format!("{}.rs:", case.program()),
        &format!("tests/ui/{}.rs:", case.name),
    );
    let mut lines: Vec<&str> = Vec::new();
    let mut is_elsewhere = false;
    for line in rendered.trim_end().lines() {
        if let Some(place) = place(line) {
            is_elsewhere = !place.starts_with("tests/ui/");
        } else if !is_source(line) {
            is_elsewhere = false;
        }
        if !is_elsewhere {
            lines.push(line);
        }
    }
    narrowed(&lines)
}

fn place(line: &str) -> Option<&str> {
    let start = line.trim_start();
    start
        .strip_prefix("--> ")
        .or_else(|| start.strip_prefix("::: "))
}

/// Returns whether a line shows source code or marks a part of it.
fn is_source(line: &str) -> bool {
    let after_number = line.trim_start_matches(|it: char| it == ' ' || it.is_ascii_digit());
    line == "..." || (line != after_number && after_number.starts_with(['|', '+', '~', '-']))
}

/// Narrows the margin to the highest line number that is left in the text.
fn narrowed(lines: &[&str]) -> String {
    let digits = |line: &&str| {
        let start = line.trim_start();
        let number = start.bytes().take_while(u8::is_ascii_digit).count();
        if is_source(line) { number } else { 0 }
    };
    let needed = lines.iter().map(digits).max().unwrap_or(0);
    let margin = lines.iter().find_map(|line| line.find("--> "));
    let excess = " ".repeat(margin.unwrap_or(needed).saturating_sub(needed));
    let mut text = String::new();
    for line in lines {
        let has_margin =
            is_source(line) || place(line).is_some() || line.trim_start().starts_with("= ");
        let narrow = line.strip_prefix(&excess).filter(|_| has_margin);
        let _ = writeln!(text, "{}", narrow.unwrap_or(line).trim_end());
    }
    text
}

fn version() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("the compiler can be asked");
    let text = String::from_utf8(output.stdout).expect("a version is text");
    let version = text.split_whitespace().nth(1);
    version.expect("`rustc <version> …`").to_owned()
}

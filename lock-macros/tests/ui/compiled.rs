//! All cases compiled at once, and what the compiler says about each, in its own JSON. It is asked for
//! what is true of every compiler: how many errors and warnings there are, and where.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, process::Command};

use serde_json::Value;

use crate::case::Case;

/// The program of all the corrections.
const INSTEAD: &str = "instead";

pub(crate) fn check(cases: &[Case]) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("misuses");
    write_project(&folder, cases);
    let said = compile(&folder);

    let mut problems = String::new();
    for case in cases {
        let said = said.get(&target(case)).map_or(&[][..], Vec::as_slice);
        if let Err(problem) = check_case(case, said) {
            let _ = writeln!(problems, "{}: {problem}\n{}", case.name, shown(said));
        }
    }
    if let Some(said) = said.get(INSTEAD) {
        let _ = writeln!(problems, "what to write instead: {}", shown(said));
    }
    assert!(problems.is_empty(), "{problems}");
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

/// A suggestion that leaves nothing where the attribute has something: whoever follows it has lost
/// what they wrote.
fn takes_something_out(said: &Value) -> Option<&Value> {
    let children = said["children"].as_array().into_iter().flatten();
    let mut suggested = children.flat_map(|child| child["spans"].as_array().into_iter().flatten());
    suggested
        .find(|span| {
            let is_attribute = span["text"][0]["text"]
                .as_str()
                .is_some_and(|text| text.contains("#[distributed_lock"));
            is_attribute
                && span["suggested_replacement"] == ""
                && span["byte_start"] != span["byte_end"]
        })
        .map(|span| &span["text"])
}

fn primary(said: &Value) -> impl Iterator<Item = &Value> {
    let spans = said["spans"].as_array().into_iter().flatten();
    spans.filter(|span| span["is_primary"] == true)
}

fn shown(said: &[Value]) -> String {
    said.iter()
        .filter_map(|said| said["rendered"].as_str())
        .collect()
}

fn target(case: &Case) -> String {
    case.name.replace('/', "-")
}

/// A package with a program for each case, and one with all the corrections, each in a module.
fn write_project(folder: &Path, cases: &[Case]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = here.parent().expect("the crate is in a workspace");
    let mut manifest = format!(
        "[package]\nname = \"misuses\"\nedition = \"2024\"\nautobins = false\n\n[workspace]\n\n\
         [dependencies]\n\
         lock-core = {{ path = {:?}, default-features = false, features = [\"axum\", \"macros\"] }}\n\
         async-trait = \"*\"\n\
         axum = {{ version = \"*\", default-features = false }}\n\
         tokio = {{ version = \"*\", features = [\"macros\", \"rt\"] }}\n\
         tracing = {{ version = \"*\", features = [\"attributes\"] }}\n",
        workspace.join("lock-core"),
    );
    let mut instead = String::from(
        "#![allow(dead_code, unused_variables)]\n#![deny(warnings)]\n\nfn main() {}\n",
    );
    fs::create_dir_all(folder).expect("the folder can be made");
    for case in cases {
        let target = target(case);
        write_if_new(&folder.join(format!("{target}.rs")), &case.source);
        let _ = write!(
            manifest,
            "\n[[bin]]\nname = {target:?}\npath = \"{target}.rs\"\n"
        );
        let module = target.replace('-', "_");
        let _ = write!(instead, "\nmod {module} {{\n{}}}\n", case.fixed);
    }
    let _ = write!(
        manifest,
        "\n[[bin]]\nname = {INSTEAD:?}\npath = \"{INSTEAD}.rs\"\n"
    );
    write_if_new(&folder.join(format!("{INSTEAD}.rs")), &instead);
    write_if_new(&folder.join("Cargo.toml"), &manifest);
    // The same versions as everywhere else, so that nothing has to be looked up.
    let lock = fs::read_to_string(workspace.join("Cargo.lock")).expect("the workspace is locked");
    fs::write(folder.join("Cargo.lock"), lock).expect("the lock file can be written");
}

fn write_if_new(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::write(path, text).expect("the project can be written");
}

/// What is said about each target: errors and warnings that have a place.
fn compile(folder: &Path) -> BTreeMap<String, Vec<Value>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "check",
            "--offline",
            "--keep-going",
            "--message-format=json",
            "--target-dir",
        ])
        .arg(folder.join("target"))
        .current_dir(folder)
        .output()
        .expect("cargo runs");
    let mut said: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut compiled = 0;
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        compiled += usize::from(message["target"]["kind"][0] == "bin");
        let has_place = primary(&message["message"]).next().is_some();
        if let Some(target) = message["target"]["name"].as_str().filter(|_| has_place) {
            said.entry(target.to_owned())
                .or_default()
                .push(message["message"].clone());
        }
    }
    assert!(
        compiled > 0,
        "nothing was compiled:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

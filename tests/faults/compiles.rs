//! Checks that rows compile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lock_tests::ChildProcess;
use lock_tests::faults::{self, Edit, Fault};

use crate::arguments::Arguments;
use crate::copy::{Broken, Copy};
use crate::run::BUILD;

/// Checks the chosen rows, as many at once as do not change the same lines. Returns whether all compile.
pub(crate) fn rows(workspace: &Path, arguments: &Arguments) -> Result<bool, String> {
    let all = faults::read(workspace)?;
    let copy = Copy::of_the_last_commit(workspace, &all)?;
    let chosen = arguments.choose(workspace, all)?;
    packages_of(&copy, &chosen.iter().collect::<Vec<_>>())
        .map_err(|error| format!("without a fault:\n{error}"))?;
    // A fault of one package would have the packages that use it checked again.
    let mut open: Vec<Rows<'_>> = by_packages(&copy, &chosen).into_values().collect();
    let (mut fit, mut good) = (0, true);
    while let Some(batch) = open.pop() {
        if batch.is_empty() {
            continue;
        }
        let Checked {
            judged,
            left,
            result,
        } = check(&copy, batch);
        open.push(left);
        match result {
            Ok(()) => {
                fit += judged.len();
                println!("{fit}/{} compile", chosen.len());
            }
            Err(problem) if judged.len() < 2 => {
                good = false;
                println!("{}: {}", judged[0].name, problem.text);
            }
            // They may disturb each other.
            Err(problem) => open.extend(apart(judged, &problem.named)),
        }
    }
    Ok(good)
}

type Rows<'a> = Vec<&'a Fault>;

/// The rows by the packages that they change.
fn by_packages<'a>(copy: &Copy, rows: &'a [Fault]) -> BTreeMap<BTreeSet<PathBuf>, Rows<'a>> {
    let mut groups: BTreeMap<_, Rows<'_>> = BTreeMap::new();
    for row in rows {
        groups.entry(manifests(copy, &[row])).or_default().push(row);
    }
    groups
}

struct Checked<'a> {
    /// As many rows as can be applied on top of each other.
    judged: Rows<'a>,
    left: Rows<'a>,
    result: Result<(), Problem>,
}

struct Problem {
    text: String,
    /// The names of the rows whose lines an error names.
    named: BTreeSet<String>,
}

/// Checks as many rows of a batch as can be applied on top of each other.
fn check<'a>(copy: &Copy, batch: Rows<'a>) -> Checked<'a> {
    let (mut judged, mut left) = (Vec::new(), Vec::new());
    let mut broken: Vec<Broken<'_>> = Vec::new();
    let mut rows = batch.into_iter();
    while let Some(fault) = rows.next() {
        match copy.break_by(fault) {
            Ok(one) => {
                broken.push(one);
                judged.push(fault);
            }
            Err(problem) if judged.is_empty() => {
                let problem = Problem {
                    text: format!("DOES NOT APPLY: {problem}"),
                    named: BTreeSet::new(),
                };
                return Checked {
                    judged: vec![fault],
                    left: rows.collect(),
                    result: Err(problem),
                };
            }
            Err(_) => left.push(fault),
        }
    }
    let result = packages_of(copy, &judged).map_err(|output| Problem {
        text: format!("DOES NOT BUILD: {}", first_error(&output)),
        named: named_by(copy, &output, &judged),
    });
    // Each one restores the files as it found them.
    while broken.pop().is_some() {}
    Checked {
        judged,
        left,
        result,
    }
}

/// Parts rows that do not compile together: those that an error names from the others, or one half from the other.
fn apart<'a>(rows: Rows<'a>, named: &BTreeSet<String>) -> [Rows<'a>; 2] {
    let half = rows.len() / 2;
    let (named, others): (Rows<'_>, Rows<'_>) =
        rows.into_iter().partition(|row| named.contains(&row.name));
    match named.is_empty() || others.is_empty() {
        false => [named, others],
        true => {
            let mut rows = [named, others].concat();
            let last = rows.split_off(half);
            [last, rows]
        }
    }
}

/// Returns the rows that have put the lines there at which the errors are; if there are none, all rows of these files.
fn named_by(copy: &Copy, output: &str, rows: &Rows<'_>) -> BTreeSet<String> {
    let places: Vec<(&str, String)> = errors(output)
        .filter_map(|error| {
            let mut parts = error.split(':');
            let (file, line) = (parts.next()?, parts.next()?.parse::<usize>().ok()?);
            let source = fs::read_to_string(copy.root.join(file)).ok()?;
            let line = source.lines().nth(line.checked_sub(1)?)?.trim();
            Some((file, line.to_owned()))
        })
        .collect();
    let named = |is_at: &dyn Fn(&Edit, &str) -> bool| -> BTreeSet<String> {
        let of_a_place = |row: &&&Fault| {
            let mut at = places.iter().flat_map(|(file, line)| {
                let edits = row.edits.iter().filter(move |edit| edit.file == **file);
                edits.map(move |edit| (edit, line))
            });
            at.any(|(edit, line)| is_at(edit, line))
        };
        let rows = rows.iter().filter(of_a_place);
        rows.map(|row| row.name.clone()).collect()
    };
    let by_line = named(&|edit, line| !line.is_empty() && edit.becomes.contains(line));
    match by_line.is_empty() {
        true => named(&|_, _| true),
        false => by_line,
    }
}

/// The errors in the short output of cargo, each `<file>:<line>:<column>: error…`.
fn errors(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter(|line| line.contains(": error"))
}

/// Returns the first error in the short output of cargo.
pub(crate) fn first_error(output: &str) -> String {
    errors(output).next().unwrap_or(output).to_owned()
}

/// Checks the packages whose files the faults change. The copy has the faults. The error is the short output of cargo.
pub(crate) fn packages_of(copy: &Copy, faults: &[&Fault]) -> Result<(), String> {
    let changed: Vec<&str> = edits(faults).map(|edit| edit.file.as_str()).collect();
    for manifest in manifests(copy, faults) {
        let mut command = Command::new("cargo");
        command
            .args(["check", "-q", "--locked", "--all-features"])
            .args(targets(copy, &manifest, &changed))
            .args(["--message-format=short", "--manifest-path"])
            .arg(manifest)
            .current_dir(&copy.root)
            .env("CARGO_TARGET_DIR", &copy.shared)
            .env("CARGO_INCREMENTAL", "1");
        let mut check = ChildProcess::spawn(command);
        match check.wait(BUILD) {
            Some(status) if status.success() => {}
            Some(_) => return Err(check.output()),
            None => return Err("the build does not end".to_owned()),
        }
    }
    Ok(())
}

/// Returns cargo's arguments for the targets of a package to which the changed files belong. A library with its tests has all of
/// its own files.
fn targets(copy: &Copy, manifest: &Path, changed: &[&str]) -> &'static [&'static str] {
    let package = manifest.parent().expect("the folder of a manifest");
    let is_of_the_library = |file: &&str| {
        let path = copy.root.join(file);
        !path.starts_with(package) || path.starts_with(package.join("src"))
    };
    match !changed.is_empty() && changed.iter().all(is_of_the_library) {
        true => &["--lib", "--profile", "test"],
        false => &["--all-targets"],
    }
}

/// Returns the manifests of the packages whose Rust files the faults change.
fn manifests(copy: &Copy, faults: &[&Fault]) -> BTreeSet<PathBuf> {
    let manifests = edits(faults).filter_map(|edit| manifest(&copy.root, &edit.file));
    manifests.collect()
}

fn edits<'a>(faults: &'a [&Fault]) -> impl Iterator<Item = &'a Edit> {
    faults.iter().flat_map(|fault| &fault.edits)
}

/// Returns the manifest of the package that has a file. `None`: the file is in no package, or not Rust.
fn manifest(root: &Path, file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    if path.extension().is_none_or(|extension| extension != "rs") {
        return None;
    }
    let folders = path
        .ancestors()
        .skip(1)
        .filter(|folder| folder.as_os_str() != "");
    let mut manifests = folders.map(|folder| root.join(folder).join("Cargo.toml"));
    manifests.find(|manifest| manifest.is_file())
}

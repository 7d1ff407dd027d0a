//! Runs the tests that must notice a fault.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use lock_tests::ChildProcess;
use lock_tests::faults::Fault;

use crate::copy::Copy;

/// The longest time of a build.
pub(crate) const BUILD: Duration = Duration::from_secs(1800);

/// The outcome of a run.
enum Ran {
    /// The run ended with this output.
    Ended(String),
    DoesNotBuild(String),
    Hangs,
}

/// Checks that all named tests exist, and that they pass without a fault.
pub(crate) fn without_faults(copy: &Copy, faults: &[Fault]) -> Result<(), String> {
    let mut suites: BTreeMap<&str, Vec<&Fault>> = BTreeMap::new();
    for fault in faults {
        suites.entry(&fault.suite).or_default().push(fault);
    }
    for faults in suites.values() {
        let names = faults.iter().flat_map(|fault| &fault.must_fail);
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let output = match tests(copy, faults[0], &names)? {
            Ran::Ended(output) => output,
            Ran::DoesNotBuild(error) => return Err(format!("the commit does not build: {error}")),
            Ran::Hangs => return Err("the tests hang without any fault".to_owned()),
        };
        for name in names {
            if !told(&output, name, "ok") {
                return Err(format!(
                    "{name} does not exist, or fails without any fault:\n{output}"
                ));
            }
        }
    }
    Ok(())
}

/// Runs the tests of a fault. `Ok(Ok(_))` means that every test noticed it; the outer error
/// means that the copy cannot be used.
pub(crate) fn verdict(copy: &Copy, fault: &Fault) -> Result<Result<String, String>, String> {
    let names: Vec<&str> = fault.must_fail.iter().map(String::as_str).collect();
    let _broken = match copy.break_by(fault) {
        Ok(broken) => broken,
        Err(problem) => return Ok(Err(format!("DOES NOT APPLY: {problem}"))),
    };
    Ok(match tests(copy, fault, &names)? {
        Ran::Hangs => Err("HANGS; a test must fail instead".to_owned()),
        Ran::DoesNotBuild(error) => Err(format!("DOES NOT BUILD: {error}")),
        Ran::Ended(output) => {
            let missed = names.iter().find(|name| !told(&output, name, "FAILED"));
            match missed {
                Some(name) => Err(format!("NOT NOTICED by {name}")),
                None => Ok(format!("noticed by {}", names.join(", "))),
            }
        }
    })
}

/// Returns whether the output reports this result of a test.
fn told(output: &str, name: &str, result: &str) -> bool {
    output.lines().any(|line| {
        let rest = line
            .strip_prefix("test ")
            .and_then(|line| line.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(' ') && rest.ends_with(result))
    })
}

/// Returns the first error of a build.
pub(crate) fn error_of(output: &str) -> String {
    let error = output.lines().find(|line| line.starts_with("error"));
    error.unwrap_or(output).to_owned()
}

fn tests(copy: &Copy, fault: &Fault, names: &[&str]) -> Result<Ran, String> {
    let (package, binary) = fault.suite()?;
    let target = match binary {
        "lib" => vec!["--lib"],
        binary => vec!["--test", binary],
    };
    let cargo = |more: &[&str]| {
        let mut command = Command::new("cargo");
        command
            .args(["test", "-q", "--locked", "-p", package, "--all-features"])
            .args(&target)
            .args(more)
            .current_dir(&copy.root)
            .env("CARGO_TARGET_DIR", &copy.target)
            .env("CARGO_INCREMENTAL", "1");
        ChildProcess::spawn(command)
    };
    let mut build = cargo(&["--no-run"]);
    match build.wait(BUILD) {
        Some(status) if status.success() => {}
        Some(_) => {
            return Ok(Ran::DoesNotBuild(error_of(&build.output())));
        }
        None => return Err("the build did not end in time".to_owned()),
    }
    let mut run = cargo(&[&["--", "--exact", "--format=pretty"], names].concat());
    let limit = Duration::from_secs(120 + 60 * names.len() as u64);
    Ok(match run.wait(limit) {
        Some(_) => Ran::Ended(run.output()),
        None => Ran::Hangs,
    })
}

//! Breaks the kit on purpose and checks that a test notices.
//!
//! ```sh
//! cargo run -p lock-tests --bin faults                        # every row of rows.toml; takes hours
//! cargo run -p lock-tests --bin faults -- deadline tower      # rows with one of these in their names
//! cargo run -p lock-tests --bin faults -- --changed main      # rows of files that differ from a commit
//! ```
//!
//! The command applies the faults, one at a time, to a copy of the last commit in `target/faults`. It
//! fails if a test does not notice its fault, hangs because of it, fails without it, or does not exist.

mod copy;
mod run;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use lock_tests::faults::{self, Fault};

use self::copy::Copy;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match judge(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether every chosen fault was noticed.
fn judge(arguments: &[String]) -> Result<bool, String> {
    let workspace = workspace();
    let chosen = chosen(&workspace, arguments)?;
    if chosen.is_empty() {
        return Err("no row of rows.toml matches these arguments".to_owned());
    }
    let copy = Copy::of_the_last_commit(&workspace, &faults::read(&workspace)?)?;
    run::without_faults(&copy, &chosen)?;
    let mut all = true;
    for (index, fault) in chosen.iter().enumerate() {
        let verdict = run::verdict(&copy, fault)?;
        all &= verdict.is_ok();
        let words = verdict.unwrap_or_else(|problem| problem);
        println!("{}/{} {}: {words}", index + 1, chosen.len(), fault.name);
    }
    Ok(all)
}

fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("the package is in the workspace").to_path_buf()
}

fn chosen(workspace: &Path, arguments: &[String]) -> Result<Vec<Fault>, String> {
    let mut rows = faults::read(workspace)?;
    match arguments {
        [] => {}
        [option, commit] if option == "--changed" => {
            let changed = changed_since(workspace, commit)?;
            let touched = |fault: &Fault| fault.edits.iter().any(|it| changed.contains(&it.file));
            rows.retain(touched);
        }
        parts => rows.retain(|fault| parts.iter().any(|part| fault.name.contains(part.as_str()))),
    }
    Ok(rows)
}

fn changed_since(workspace: &Path, commit: &str) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["diff", "--name-only", commit])
        .current_dir(workspace)
        .output()
        .map_err(|error| format!("git does not run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.lines().map(str::to_owned).collect())
}

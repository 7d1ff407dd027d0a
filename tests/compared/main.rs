//! Asks the registries for newer versions of the libraries with which the pages compare the kit.
//!
//! ```sh
//! cargo run -p lock-tests --bin compared                # every row of versions.toml
//! cargo run -p lock-tests --bin compared -- rslock npm  # rows with one of these words in their names
//! ```
//!
//! The command asks cargo, npm, pip and git, each for what it knows, and prints the lines of the pages that need
//! another look. It exits with 1 if a version is newer, with 3 if none is newer but a registry has not answered, and
//! with 2 if it cannot read the list.

use std::path::Path;
use std::process::ExitCode;

use lock_tests::compared::{self, Finding};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match findings(&words) {
        Ok(findings) => Finding::exit_status(&findings).into(),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn findings(words: &[String]) -> Result<Vec<Finding>, String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = tests.parent().expect("the package is in the workspace");
    let mut rows = compared::read(workspace)?;
    rows.retain(|row| words.is_empty() || words.iter().any(|word| row.name.contains(word)));
    if rows.is_empty() {
        return Err("no row of versions.toml has one of these words in its name".to_owned());
    }
    let mut findings = Vec::new();
    for row in &rows {
        let finding = row.judged(row.asked.ask());
        println!("{} {}: {finding}", row.name, row.stated());
        if finding != Finding::UpToDate {
            for place in row.places(workspace)? {
                println!("    {place}");
            }
        }
        findings.push(finding);
    }
    let count =
        |kind: fn(&Finding) -> bool| findings.iter().filter(|finding| kind(finding)).count();
    println!(
        "{} compared: {} up to date, {} with a newer version, {} could not be asked, {} to read by hand",
        findings.len(),
        count(|finding| matches!(finding, Finding::UpToDate)),
        count(|finding| matches!(finding, Finding::Newer(_))),
        count(|finding| matches!(finding, Finding::NotAsked(_))),
        count(|finding| matches!(finding, Finding::ByHand(_))),
    );
    Ok(findings)
}

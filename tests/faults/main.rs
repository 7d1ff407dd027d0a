//! Breaks the kit on purpose and checks that a test, or the simulation, notices.
//!
//! ```sh
//! cargo run -p lock-tests --bin faults                        # every row of rows.toml that names tests; takes hours
//! cargo run -p lock-tests --bin faults -- deadline tower      # rows with one of these in their names
//! cargo run -p lock-tests --bin faults -- --changed main      # rows of files that differ from a commit
//! cargo run -p lock-tests --bin faults -- --sim               # every row, by the simulation of tests/sim
//! cargo run -p lock-tests --bin faults -- --compile           # every row, only whether it compiles; some minutes
//! cargo run -p lock-tests --bin faults -- --lua               # small changes of the Lua scripts, by the simulation
//! ```
//!
//! * `--seconds 20`: the simulation looks for each fault for so long; 60 by default
//! * `--share 1/4`: only the first of four shares of the rows
//! * `--write`: with `--sim`, rows that say `missed` and are found are rewritten in rows.toml
//! * `--resume`: what the result file `target/faults/sim.tsv` or `lua.tsv` has is not judged again
//!
//! The command applies the faults, one at a time, to a copy of the last commit in `target/faults`. It
//! fails if a test does not notice its fault, hangs because of it, fails without it, or does not exist; if the
//! simulation does not do with a row what its field `sim` says; and if a row does not compile. Changes of the Lua scripts
//! that survive are listed and are no failure.

mod arguments;
mod compiles;
mod copy;
mod mutants;
mod results;
mod run;
mod simulate;
mod writing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lock_tests::faults;

use self::arguments::{Arguments, Judge};
use self::copy::Copy;

fn main() -> ExitCode {
    let arguments = Arguments::parse(std::env::args().skip(1));
    let judged = arguments.and_then(|arguments| match arguments.judge {
        Judge::Tests => by_tests(&arguments),
        Judge::Compiler => compiles::rows(&workspace(), &arguments),
        Judge::Simulation => simulate::rows(&workspace(), &arguments),
        Judge::Mutants => simulate::mutants(&workspace(), &arguments),
    });
    match judged {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether every chosen fault was noticed.
fn by_tests(arguments: &Arguments) -> Result<bool, String> {
    let workspace = workspace();
    let mut chosen = arguments.choose(&workspace, faults::read(&workspace)?)?;
    // The simulation alone finds the others.
    chosen.retain(|fault| !fault.must_fail.is_empty());
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

//! Runs the simulation of `tests/sim` with a fault in it.
//!
//! The simulation can take changed parts of scripts when it starts, so a fault of the scripts alone needs no build.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use lock_tests::ChildProcess;
use lock_tests::faults::{self, Fault, Simulated};

use crate::arguments::Arguments;
use crate::compiles;
use crate::copy::Copy;
use crate::mutants::{self, Mutant};
use crate::results::Results;
use crate::run::{BUILD, error_of};
use crate::writing;

pub(crate) const SCRIPTS: &str = "lock-core/src/scripts/";
/// The simulation notices a history that has no end itself, before this time.
const LAST_HISTORY: Duration = Duration::from_secs(60);

/// What came of a search.
enum Search {
    /// The place, and words that name rule, seed and time.
    Found(String, String),
    Clean(String),
    DoesNotCompile(String),
}

/// Judges the rows. Returns whether the simulation did with each what the row says.
pub(crate) fn rows(workspace: &Path, arguments: &Arguments) -> Result<bool, String> {
    let all = faults::read(workspace)?;
    let copy = Copy::of_the_last_commit(workspace, &all)?;
    let chosen = arguments.choose(workspace, all)?;
    if chosen.is_empty() {
        return Err("no row of rows.toml matches these arguments".to_owned());
    }
    let simulation = Simulation::of(&copy, workspace, arguments)?;
    let mut results = results(workspace, arguments, "sim.tsv")?;
    let mut good = true;
    for (index, fault) in chosen.iter().enumerate() {
        if results.has(&fault.name) {
            continue;
        }
        let verdict = match &fault.sim {
            Some(Simulated::Found { .. } | Simulated::Missed { .. }) => {
                simulation.good()?;
                let verdict = simulation.verdict(fault, arguments.seconds);
                verdict.unwrap_or_else(Err)
            }
            _ => simulation.compile(fault),
        };
        good &= verdict.is_ok();
        let words = verdict.unwrap_or_else(|problem| format!("UNEXPECTED: {problem}"));
        println!("{}/{} {}: {words}", index + 1, chosen.len(), fault.name);
        results.note(&fault.name, &words)?;
    }
    Ok(good)
}

/// Judges small changes of the Lua scripts.
pub(crate) fn mutants(workspace: &Path, arguments: &Arguments) -> Result<bool, String> {
    let copy = Copy::of_the_last_commit(workspace, &faults::read(workspace)?)?;
    let all = mutants::of_scripts(&copy.root.join(SCRIPTS))?;
    let chosen = arguments.share_of(all.into_iter(), |mutant| &mutant.name);
    let simulation = Simulation::of(&copy, workspace, arguments)?;
    simulation.good()?;
    let mut results = results(workspace, arguments, "lua.tsv")?;
    let (mut caught, mut survived) = (0, Vec::new());
    for (index, mutant) in chosen.iter().enumerate() {
        if results.has(&mutant.name) {
            continue;
        }
        let words = match simulation.judge_mutant(mutant, arguments.seconds) {
            Ok(Search::Found(_, words)) => {
                caught += 1;
                format!("caught: {words}")
            }
            Ok(Search::Clean(words)) => {
                survived.push(&mutant.name);
                format!("SURVIVED: {words}")
            }
            Ok(Search::DoesNotCompile(_)) => "does not compile".to_owned(),
            Err(problem) => format!("NOT JUDGED: {problem}"),
        };
        println!("{}/{} {}: {words}", index + 1, chosen.len(), mutant.name);
        results.note(&mutant.name, &words)?;
    }
    println!("{caught} caught, {} survived:", survived.len());
    survived.iter().for_each(|name| println!("  {name}"));
    Ok(true)
}

fn results(workspace: &Path, arguments: &Arguments, name: &str) -> Result<Results, String> {
    let path = workspace.join("target/faults").join(name);
    if arguments.resumes {
        Results::resumed(&path)
    } else {
        Results::new(&path)
    }
}

/// The simulation, and the copy in which it is built with a fault.
struct Simulation<'a> {
    copy: &'a Copy,
    /// The program without a fault, when it is needed.
    good: OnceCell<PathBuf>,
    /// The folder of changed scripts.
    parts: PathBuf,
    workspace: PathBuf,
    /// Whether rows that say `missed` are rewritten when they are found.
    writes: bool,
}

impl<'a> Simulation<'a> {
    fn of(copy: &'a Copy, workspace: &Path, arguments: &Arguments) -> Result<Self, String> {
        let parts = copy.root.with_file_name("parts");
        let made = fs::create_dir_all(&parts);
        made.map_err(|error| format!("{}: {error}", parts.display()))?;
        Ok(Self {
            copy,
            good: OnceCell::new(),
            parts,
            workspace: workspace.to_path_buf(),
            writes: arguments.writes,
        })
    }

    /// Returns the program without a fault. The copy must have none when it is called for the first time.
    ///
    /// An earlier run may have built it from the same commit.
    fn good(&self) -> Result<&Path, String> {
        if self.good.get().is_none() {
            let kept = self.parts.with_file_name("lock-sim");
            let note = kept.with_extension("commit");
            let of = fs::read_to_string(&note).unwrap_or_default();
            if of != self.copy.commit || !kept.is_file() {
                let built = build(self.copy).map_err(|error| format!("the simulation: {error}"))?;
                let copied = fs::copy(built, &kept);
                let noted = copied.and_then(|_| fs::write(&note, &self.copy.commit));
                noted.map_err(|error| format!("{}: {error}", kept.display()))?;
            }
            let _ = self.good.set(kept);
        }
        Ok(self.good.get().expect("it is built"))
    }

    /// Returns words about the fault; the inner error says that its row is wrong.
    fn verdict(&self, fault: &Fault, seconds: u64) -> Result<Result<String, String>, String> {
        let on = match &fault.sim {
            Some(Simulated::Found { found: on } | Simulated::Missed { missed: on, .. }) => {
                on.join(",")
            }
            _ => "all".to_owned(),
        };
        let faulty = match fault.applied_to(&self.copy.root) {
            Ok(faulty) => faulty,
            Err(problem) => return Ok(Err(format!("DOES NOT APPLY: {problem}"))),
        };
        let search = if faulty.keys().all(|file| file.starts_with(SCRIPTS)) {
            self.search_with_parts(&faulty, &on, seconds)?
        } else {
            self.search_with_build(fault, &on, seconds)?
        };
        let is_expected = matches!(&fault.sim, Some(Simulated::Found { .. }));
        Ok(match search {
            Search::DoesNotCompile(error) => Err(format!("DOES NOT BUILD: {error}")),
            Search::Found(_, words) if is_expected => Ok(format!("found: {words}")),
            Search::Found(on, words) if self.writes => {
                writing::is_found(&self.workspace, &fault.name, &on)?;
                Ok(format!("found, and its row now says so: {words}"))
            }
            Search::Found(_, words) => Err(format!("FOUND, and its row says `missed`: {words}")),
            Search::Clean(words) if is_expected => Err(format!("NOT FOUND: {words}")),
            Search::Clean(words) => Ok(format!("missed: {words}")),
        })
    }

    fn compile(&self, fault: &Fault) -> Result<String, String> {
        let broken = self.copy.break_by(fault);
        let _broken = broken.map_err(|problem| format!("DOES NOT APPLY: {problem}"))?;
        let compiled = compiles::packages_of(self.copy, &[fault]);
        compiled.map_err(|output| format!("DOES NOT BUILD: {}", compiles::first_error(&output)))?;
        Ok("compiles".to_owned())
    }

    fn judge_mutant(&self, mutant: &Mutant, seconds: u64) -> Result<Search, String> {
        let faulty = BTreeMap::from([(mutant.file.clone(), mutant.content.clone())]);
        self.search_with_parts(&faulty, mutant.topologies(), seconds)
    }

    fn search_with_build(&self, fault: &Fault, on: &str, seconds: u64) -> Result<Search, String> {
        self.good()?;
        let _broken = self.copy.break_by(fault)?;
        match build(self.copy) {
            Ok(program) => self.search(&program, &[], on, seconds),
            Err(error) => Ok(Search::DoesNotCompile(error)),
        }
    }

    fn search_with_parts(
        &self,
        faulty: &BTreeMap<String, String>,
        on: &str,
        seconds: u64,
    ) -> Result<Search, String> {
        let mut parts = Vec::new();
        for (file, content) in faulty {
            let name = file.rsplit('/').next().expect("a file has a name");
            let path = self.parts.join(name);
            fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
            parts.push(path);
        }
        self.search(self.good()?, &parts, on, seconds)
    }

    /// Looks for a history that violates a rule with the fault and not without it.
    fn search(
        &self,
        program: &Path,
        parts: &[PathBuf],
        on: &str,
        seconds: u64,
    ) -> Result<Search, String> {
        #[allow(
            clippy::disallowed_methods,
            reason = "the search is limited in real time"
        )]
        let start = Instant::now();
        let (mut first, mut both) = (0, 0);
        loop {
            #[allow(clippy::disallowed_methods, reason = "as above")]
            let left = seconds.saturating_sub(start.elapsed().as_secs());
            let line = find(program, parts, on, left, first, u64::MAX)?;
            let words: Vec<&str> = line.split('\t').collect();
            match words.as_slice() {
                ["clean", words] => {
                    let words = format!("{words}, {both} seeds fail without a fault, too");
                    return Ok(Search::Clean(words));
                }
                ["no script", error] => return Ok(Search::DoesNotCompile((*error).to_owned())),
                ["found", place, seed, words] => {
                    let number: u64 = seed.parse().map_err(|_| format!("no seed: {line}"))?;
                    let without = find(self.good()?, &[], place, seconds, number, 1)?;
                    if without.starts_with("clean") {
                        let words = format!("{words} (seed {place} {seed})");
                        return Ok(Search::Found((*place).to_owned(), words));
                    }
                    first = number + 1;
                    both += 1;
                }
                _ => return Err(format!("the simulation answers:\n{line}")),
            }
        }
    }
}

/// Builds the simulation in the copy, and returns the program.
fn build(copy: &Copy) -> Result<PathBuf, String> {
    let target = copy.root.with_file_name("sim-target");
    let mut command = Command::new("cargo");
    command
        .args(["build", "-q", "--locked"])
        // Its settings for cargo are in the folder.
        .current_dir(copy.root.join("tests/sim"))
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "1");
    let mut build = ChildProcess::spawn(command);
    match build.wait(BUILD) {
        Some(status) if status.success() => Ok(target.join("debug/lock-sim")),
        Some(_) => Err(error_of(&build.output())),
        None => Err("the build does not end".to_owned()),
    }
}

/// Returns the result line of the simulation.
fn find(
    program: &Path,
    parts: &[PathBuf],
    on: &str,
    seconds: u64,
    first: u64,
    histories: u64,
) -> Result<String, String> {
    let mut command = Command::new(program);
    let numbers = [seconds, first, histories].map(|number| number.to_string());
    command.args(["find", on]).args(numbers).args(parts);
    let mut run = ChildProcess::spawn(command);
    let ended = run.wait(Duration::from_secs(seconds) + LAST_HISTORY);
    let output = run.output();
    let result = output
        .lines()
        .find_map(|line| line.strip_prefix("result: "));
    match (result, ended) {
        (Some(line), _) => Ok(line.to_owned()),
        (None, Some(_)) => Err(format!("the simulation ends without a result:\n{output}")),
        (None, None) => Err(format!("the simulation does not end:\n{output}")),
    }
}

//! The arguments of the command.

use std::path::Path;
use std::process::Command;

use lock_tests::faults::Fault;

/// How faults are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// By the tests that each row names.
    Tests,
    /// By the simulation.
    Simulation,
    /// By the compiler alone, which must accept each row.
    Compiler,
    /// By the simulation, and the faults are small changes of the Lua scripts.
    Mutants,
}

/// What the command is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) judge: Judge,
    /// How long the simulation looks for one fault.
    pub(crate) seconds: u64,
    /// Whether results of an earlier run stand.
    pub(crate) resumes: bool,
    /// Whether rows are rewritten that say `missed` and are found.
    pub(crate) writes: bool,
    /// Only the rows of files that differ from this commit.
    changed: Option<String>,
    /// Only each so manieth row, from one on.
    share: Option<(usize, usize)>,
    /// Only names that contain one of these.
    names: Vec<String>,
}

impl Arguments {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            judge: Judge::Tests,
            seconds: 60,
            resumes: false,
            writes: false,
            changed: None,
            share: None,
            names: Vec::new(),
        };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--sim" => arguments.judge = Judge::Simulation,
                "--compile" => arguments.judge = Judge::Compiler,
                "--lua" => arguments.judge = Judge::Mutants,
                "--resume" => arguments.resumes = true,
                "--write" => arguments.writes = true,
                "--changed" => arguments.changed = Some(value()?),
                "--seconds" => {
                    let seconds = value()?;
                    let number = seconds.parse().ok().filter(|seconds| *seconds > 0);
                    arguments.seconds =
                        number.ok_or_else(|| format!("--seconds {seconds} is no number"))?;
                }
                "--share" => arguments.share = Some(share(&value()?)?),
                option if option.starts_with('-') => {
                    return Err(format!("there is no option {option}"));
                }
                name => arguments.names.push(name.to_owned()),
            }
        }
        if arguments.resumes && matches!(arguments.judge, Judge::Tests | Judge::Compiler) {
            return Err("--resume goes with --sim and --lua only".to_owned());
        }
        Ok(arguments)
    }

    /// Returns the chosen rows.
    pub(crate) fn choose(&self, workspace: &Path, rows: Vec<Fault>) -> Result<Vec<Fault>, String> {
        let changed = match &self.changed {
            Some(commit) => Some(changed_since(workspace, commit)?),
            None => None,
        };
        let is_changed = |fault: &Fault| match &changed {
            Some(changed) => fault.edits.iter().any(|it| changed.contains(&it.file)),
            None => true,
        };
        let chosen = rows.into_iter().filter(is_changed);
        Ok(self.share_of(chosen, |fault| &fault.name))
    }

    /// Returns the chosen ones among named things.
    pub(crate) fn share_of<T>(
        &self,
        all: impl Iterator<Item = T>,
        name: impl Fn(&T) -> &str,
    ) -> Vec<T> {
        let named = |one: &T| {
            let mut parts = self.names.iter();
            self.names.is_empty() || parts.any(|part| name(one).contains(part.as_str()))
        };
        let (from, step) = self.share.unwrap_or((0, 1));
        all.filter(named).skip(from).step_by(step).collect()
    }
}

/// Reads a share such as `1/4`.
fn share(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(number, of)| {
        let (number, of): (usize, usize) = (number.parse().ok()?, of.parse().ok()?);
        (1..=of).contains(&number).then(|| (number - 1, of))
    });
    numbers.ok_or_else(|| format!("--share {text} is no share, such as 1/4"))
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

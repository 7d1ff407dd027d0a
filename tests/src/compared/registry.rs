//! Asks a registry for the versions of a package, by the registry's own client.

use std::env;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::wait;

/// The longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The source of a library's versions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// A package of cargo's registry.
    Cargo(String),
    /// A package of npm's registry.
    Npm(String),
    /// A package of pip's index.
    Pip(String),
    /// A git repository, and the text before the number in the tags of its versions.
    Git(String, String),
    /// A page that no client can ask for versions.
    Page(String),
}

impl Registry {
    /// Returns the versions that the registry names.
    ///
    /// The variables `CARGO`, `NPM`, `PYTHON` and `GIT` name the clients, if they are not those on the search path.
    ///
    /// # Errors
    ///
    /// If the client is missing, fails, or has not answered within a minute.
    pub fn ask(&self) -> Result<Vec<String>, String> {
        let Some((client, arguments)) = self.question() else {
            return Ok(Vec::new());
        };
        let program = env::var_os(client.to_uppercase()).unwrap_or_else(|| match client {
            "python" => "python3".into(),
            client => client.into(),
        });
        answer(Command::new(program).args(arguments))
            .map(|answer| self.versions(&answer))
            .map_err(|error| format!("{client}: {error}"))
    }

    /// Returns the client and its arguments, or `None` for a page.
    fn question(&self) -> Option<(&'static str, Vec<&str>)> {
        Some(match self {
            Registry::Cargo(package) => ("cargo", vec!["info", "--color=never", package]),
            Registry::Npm(package) => ("npm", vec!["view", package, "versions", "--json"]),
            Registry::Pip(package) => (
                "python",
                vec![
                    "-m",
                    "pip",
                    "--disable-pip-version-check",
                    "index",
                    "versions",
                    package,
                ],
            ),
            Registry::Git(address, _) => ("git", vec!["ls-remote", "--tags", "--refs", address]),
            Registry::Page(_) => return None,
        })
    }

    /// Returns the versions in the answer of the client.
    pub fn versions(&self, answer: &str) -> Vec<String> {
        match self {
            Registry::Cargo(_) => {
                // `version: 0.3.0 (latest 2.0.0)`: the first one suits the compiler of today.
                let version = answer
                    .lines()
                    .find_map(|line| line.strip_prefix("version: "));
                let newest = version.map(|version| match version.split_once("(latest ") {
                    Some((_, latest)) => latest.trim_end_matches(')'),
                    None => version.split(' ').next().unwrap_or(version),
                });
                newest.map(str::to_owned).into_iter().collect()
            }
            // npm prints a package with one version as a string.
            Registry::Npm(_) => serde_json::from_str(answer)
                .or_else(|_| serde_json::from_str(answer).map(|version| vec![version]))
                .unwrap_or_default(),
            Registry::Pip(_) => {
                let versions = answer
                    .lines()
                    .find_map(|line| line.strip_prefix("Available versions: "));
                versions.map_or_else(Vec::new, |list| {
                    list.split(", ").map(str::to_owned).collect()
                })
            }
            Registry::Git(_, before) => {
                let tags = answer
                    .lines()
                    .filter_map(|line| line.split_once("refs/tags/"));
                let versions = tags.filter_map(|(_, tag)| tag.strip_prefix(before.as_str()));
                versions.map(str::to_owned).collect()
            }
            Registry::Page(_) => Vec::new(),
        }
    }
}

/// Runs a client and returns its output, or the line that says why there is none.
fn answer(client: &mut Command) -> Result<String, String> {
    let readable = |error: std::io::Error| error.to_string();
    let (mut out, mut errors) = (file()?, file()?);
    // In a folder without packages, because cargo and npm prefer the versions that a package there asks for.
    let empty = tempfile::tempdir().map_err(readable)?;
    client
        .current_dir(empty.path())
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(readable)?)
        .stderr(errors.try_clone().map_err(readable)?);
    let mut child = client.spawn().map_err(readable)?;
    if !wait::holds_within(PATIENCE, || !matches!(child.try_wait(), Ok(None))) {
        child.kill().map_err(readable)?;
    }
    let status = child.wait().map_err(readable)?;
    if status.success() {
        return text(&mut out);
    }
    let errors = text(&mut errors)?;
    let says = |line: &&str| {
        let line = line.to_lowercase();
        line.contains("error") || line.contains("fatal")
    };
    let line = errors.lines().find(says).or(errors.lines().last());
    Err(line.map_or_else(|| status.to_string(), |line| line.trim().to_owned()))
}

fn file() -> Result<File, String> {
    tempfile::tempfile().map_err(|error| error.to_string())
}

fn text(file: &mut File) -> Result<String, String> {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    read.map(|_| text).map_err(|error| error.to_string())
}

//! Reads the versions of the libraries with which the pages compare the kit.
//!
//! `tests/compared/versions.toml` has one row for each:
//!
//! ```toml
//! [[compared]]
//! name = "rslock"                   # the first words of its row or heading
//! version = "0.10.0"
//! released = "2026-10-27"           # or `read`, the day on which it was read, if the release has no known date
//! asked = { cargo = "rslock" }      # a package of cargo, npm or pip, the tags of a git repository, or a page
//! same = ["0.10.0-again"]           # other versions with the same content, which are not newer; optional
//! pages = ["README.md"]             # the pages on which the version stands with its date
//! ```

mod registry;

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;

use semver::Version;
use serde::Deserialize;

pub use self::registry::Registry;

/// The path of the list from the root of the workspace.
pub const LIST: &str = "tests/compared/versions.toml";

/// One version of a library, with which pages compare the kit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// The first words of the library's row or heading on the pages.
    pub name: String,
    /// The version that the pages describe.
    pub version: String,
    /// The day of the release, such as `2026-10-27`.
    pub released: Option<String>,
    /// The day on which the version was read.
    pub read: Option<String>,
    /// The registry that names the versions of today.
    pub asked: Registry,
    /// Versions with the same content.
    #[serde(default)]
    pub same: Vec<String>,
    /// The paths of the pages from the root of the workspace.
    pub pages: Vec<String>,
}

/// The answer to the question whether a comparison is still about the newest version.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The registry names no newer version.
    UpToDate,
    /// The registry names this newer version.
    Newer(String),
    /// The registry has not said which version is the newest, for this reason.
    NotAsked(String),
    /// No registry knows the versions of this page, so a person has to read it.
    ByHand(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    compared: Vec<Compared>,
}

/// Reads the list of a workspace, in its order.
///
/// # Errors
///
/// If the file cannot be read, or a row does not have the form shown above.
pub fn read(workspace: &Path) -> Result<Vec<Compared>, String> {
    let text =
        fs::read_to_string(workspace.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let List { compared } = toml::from_str(&text).map_err(|error| format!("{LIST}: {error}"))?;
    for row in &compared {
        if row.released.is_some() == row.read.is_some() {
            return Err(format!(
                "{LIST}: {} needs one of `released` and `read`",
                row.name
            ));
        }
    }
    Ok(compared)
}

impl Compared {
    /// Returns the version and its date as each page writes them, such as `0.10.0 (2026-10-27)`.
    pub fn stated(&self) -> String {
        let (before, date) = match (&self.released, &self.read) {
            (Some(released), _) => ("", released.as_str()),
            (None, read) => ("read ", read.as_deref().unwrap_or_default()),
        };
        format!("{} ({before}{date})", self.version)
    }

    /// Returns the lines on which the version stands, as `page:line`.
    ///
    /// # Errors
    ///
    /// If a page cannot be read.
    pub fn places(&self, workspace: &Path) -> Result<Vec<String>, String> {
        let stated = self.stated();
        let mut places = Vec::new();
        for page in &self.pages {
            let text = fs::read_to_string(workspace.join(page))
                .map_err(|error| format!("{page}: {error}"))?;
            let lines = (1..).zip(text.lines());
            let found = lines.filter(|(_, line)| {
                line.contains(&stated) && line.contains(&self.name)
                    || line.starts_with(&format!("Version {stated}"))
            });
            places.extend(found.map(|(number, _)| format!("{page}:{number}")));
        }
        Ok(places)
    }

    /// Judges the versions that the registry offers.
    ///
    /// A pre-release is newer only than another pre-release. A registry that does not even name the compared version
    /// has not answered the question.
    pub fn judged(&self, offered: Result<Vec<String>, String>) -> Finding {
        if let Registry::Page(address) = &self.asked {
            return Finding::ByHand(address.clone());
        }
        let offered = match offered {
            Ok(offered) => offered,
            Err(reason) => return Finding::NotAsked(reason),
        };
        let Some(compared) = parsed(&self.version) else {
            return Finding::NotAsked(format!("{} is no version", self.version));
        };
        let counts = |version: &Version| version.pre.is_empty() || !compared.pre.is_empty();
        let others = offered
            .iter()
            .filter(|version| !self.same.contains(version));
        let versions = others.filter_map(|text| Some((parsed(text)?, text)));
        let newest = versions.filter(|(version, _)| counts(version)).max();
        match newest {
            Some((newest, text)) if newest > compared => Finding::Newer(text.clone()),
            Some((newest, _)) if newest == compared => Finding::UpToDate,
            Some((_, text)) => {
                Finding::NotAsked(format!("the newest version that it names is {text}"))
            }
            None => Finding::NotAsked("its answer names no version".to_owned()),
        }
    }
}

impl Finding {
    /// Returns the exit status of the command for these findings.
    ///
    /// It is 1 if a version is newer, otherwise 3 if a registry has not answered, otherwise 0.
    pub fn exit_status(findings: &[Finding]) -> u8 {
        let any = |kind: fn(&Finding) -> bool| findings.iter().any(kind);
        if any(|finding| matches!(finding, Finding::Newer(_))) {
            1
        } else if any(|finding| matches!(finding, Finding::NotAsked(_))) {
            3
        } else {
            0
        }
    }
}

impl Display for Finding {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Finding::UpToDate => write!(out, "up to date"),
            Finding::Newer(version) => write!(out, "{version} IS NEWER"),
            Finding::NotAsked(reason) => write!(out, "could not ask: {reason}"),
            Finding::ByHand(page) => write!(out, "read it by hand: {page}"),
        }
    }
}

/// Returns every version with a date on a page, such as `0.10.0 (2026-10-27)` or `5.8.0 (read 2026-11-23)`.
pub fn stated_on(page: &str) -> Vec<String> {
    let words: Vec<&str> = page.split_whitespace().collect();
    let is_date = |word: &str| {
        let bare = word
            .trim_start_matches('(')
            .trim_end_matches([',', '.', ':', ';']);
        let date = bare.strip_suffix(')').unwrap_or_default();
        date.len() == 10
            && date
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let end = |word: &str| word.trim_end_matches([',', '.', ':', ';']).to_owned();
    let two = words
        .windows(2)
        .filter(|two| two[1].starts_with('(') && is_date(two[1]));
    let three = words
        .windows(3)
        .filter(|three| three[1] == "(read" && is_date(three[2]));
    let two = two.map(|two| format!("{} {}", two[0], end(two[1])));
    let three = three.map(|three| format!("{} {} {}", three[0], three[1], end(three[2])));
    two.chain(three).collect()
}

/// Reads a version, also one with fewer than three numbers.
fn parsed(text: &str) -> Option<Version> {
    let (numbers, rest) = match text.find(['-', '+']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let missing = 2_usize.saturating_sub(numbers.matches('.').count());
    Version::parse(&format!("{numbers}{}{rest}", ".0".repeat(missing))).ok()
}

//! Reads seeded faults.
//!
//! Each row of `tests/faults/rows.toml` breaks the kit in one way and names the tests that must then fail, or says that the
//! simulation finds it.
//!
//! ```toml
//! [[fault]]
//! name = "deadline-from-the-reply"
//! suite = "lock-tests it"                  # package and test binary; `lib` for unit tests; this is the default
//! must_fail = ["redis::slow::the_delay_of_the_answers_is_subtracted_from_the_lease"]  # none, if `sim` finds it
//! sim = { found = ["one"] }                # what the simulation does with it; only for faults of lock-core
//! [[fault.edit]]
//! file = "lock-core/src/lease/state.rs"
//! text = '''the present lines; they occur exactly once in the file'''
//! becomes = '''the faulty lines'''
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The path of the rows from the root of the workspace.
pub const ROWS: &str = "tests/faults/rows.toml";

/// One way to break the kit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// A few words, with dashes.
    pub name: String,
    /// The package and the test binary, or `lib`.
    #[serde(default = "default_suite")]
    pub suite: String,
    /// The tests that notice the fault; none, if only the simulation finds it.
    #[serde(default)]
    pub must_fail: Vec<String>,
    /// What the simulation of `tests/sim` does with the fault, if it is one of lock-core.
    pub sim: Option<Simulated>,
    /// The changes, in this order.
    #[serde(rename = "edit")]
    pub edits: Vec<Edit>,
}

/// What histories of the simulation do with a fault.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, deny_unknown_fields)]
pub enum Simulated {
    /// They show it in each of these places.
    Found {
        /// The places: topologies, also with a kind of work or a weather, such as `one:shares`.
        found: Vec<String>,
    },
    /// They do not show it yet.
    Missed {
        /// The places in which they could.
        missed: Vec<String>,
        /// What is missing.
        why: String,
    },
    /// They cannot show it.
    Unreachable {
        /// The reason.
        unreachable: String,
    },
}

/// One change to one file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The path of the file from the root of the workspace.
    pub file: String,
    /// Lines that occur exactly once in the file.
    pub text: String,
    /// The lines that replace them.
    pub becomes: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    fault: Vec<Fault>,
}

fn default_suite() -> String {
    "lock-tests it".to_owned()
}

/// Reads the rows of a workspace, in their order.
///
/// # Errors
///
/// If the file cannot be read, or a row does not have the form shown above.
pub fn read(workspace: &Path) -> Result<Vec<Fault>, String> {
    let path = workspace.join(ROWS);
    let text = fs::read_to_string(&path).map_err(|error| format!("{ROWS}: {error}"))?;
    let rows: Rows = toml::from_str(&text).map_err(|error| format!("{ROWS}: {error}"))?;
    Ok(rows.fault)
}

impl Fault {
    /// Returns the files that the fault changes, each with its faulty content.
    ///
    /// # Errors
    ///
    /// If a file is missing, or an edit's text does not occur exactly once in it.
    pub fn applied_to(&self, workspace: &Path) -> Result<BTreeMap<String, String>, String> {
        let mut faulty = BTreeMap::new();
        for Edit {
            file,
            text,
            becomes,
        } in &self.edits
        {
            let content = match faulty.remove(file) {
                Some(content) => content,
                None => fs::read_to_string(workspace.join(file))
                    .map_err(|error| format!("{}: {file}: {error}", self.name))?,
            };
            let count = content.matches(text.as_str()).count();
            if count != 1 {
                return Err(format!(
                    "{}: the text of an edit occurs {count} times in {file}; rewrite the row against the \
                     present source",
                    self.name
                ));
            }
            faulty.insert(file.clone(), content.replacen(text.as_str(), becomes, 1));
        }
        Ok(faulty)
    }

    /// Returns whether the fault is one of lock-core's source.
    pub fn is_of_the_core(&self) -> bool {
        let mut files = self.edits.iter().map(|edit| &edit.file);
        files.any(|file| file.starts_with("lock-core/src/"))
    }

    /// Returns the cargo package and the test binary of the tests.
    ///
    /// # Errors
    ///
    /// If the suite is not two words.
    pub fn suite(&self) -> Result<(&str, &str), String> {
        let suite = self.suite.split_once(' ');
        suite.ok_or_else(|| {
            format!(
                "{}: the suite is `<package> <test binary or lib>`",
                self.name
            )
        })
    }
}

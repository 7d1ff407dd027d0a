//! The file of results, which a later run may resume.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The file: one line for each result, which is a name, a tab and words.
pub(crate) struct Results {
    file: File,
    known: BTreeSet<String>,
}

impl Results {
    /// Begins a new file.
    pub(crate) fn new(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let known = BTreeSet::new();
        Ok(Self { file, known })
    }

    /// Continues the file of an earlier run.
    pub(crate) fn resumed(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let names = text.lines().filter_map(|line| line.split('\t').next());
        let known = names.map(str::to_owned).collect();
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { file, known })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    pub(crate) fn note(&mut self, name: &str, words: &str) -> Result<(), String> {
        let line = format!("{name}\t{}\n", words.replace(['\n', '\t'], " "));
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| format!("a result could not be written: {error}"))
    }
}

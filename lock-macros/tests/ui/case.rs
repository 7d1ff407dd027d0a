//! A case: a program with one mistake, the error about it, and the corrected program.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) struct Case {
    /// `macros/ttl_has_no_unit`
    pub(crate) name: String,
    path: PathBuf,
    pub(crate) source: String,
    /// Describes the mistake.
    pub(crate) cause: String,
    /// Describes the correction.
    pub(crate) advice: String,
    /// The lines with the mistake.
    pub(crate) wrong: Vec<String>,
    /// The corrected lines.
    pub(crate) right: Vec<String>,
    /// The program with the corrected lines.
    pub(crate) fixed: String,
    /// The output of the compiler.
    pub(crate) output: String,
}

impl Case {
    pub(crate) fn all() -> Vec<Case> {
        let sets = ["macros", "compiler", "idempotent", "idempotent_compiler"];
        sets.into_iter().flat_map(set).collect()
    }

    /// Returns the name of its program.
    pub(crate) fn program(&self) -> String {
        self.name.replace('/', "-")
    }

    /// Returns whether the compiler words the error, and not a macro.
    pub(crate) fn is_of_the_compiler(&self) -> bool {
        let (set, _) = self.name.split_once('/').unwrap_or_default();
        set.ends_with("compiler")
    }

    /// Replaces the output in the file beside the source.
    pub(crate) fn write_output(&self, output: &str) {
        fs::write(self.path.with_extension("stderr"), output).expect("the output can be written");
    }

    /// Returns the line and the column at which the output points.
    pub(crate) fn place(&self) -> (usize, usize) {
        let place = self
            .output
            .lines()
            .find_map(|line| line.trim_start().strip_prefix("--> "))
            .unwrap_or_else(|| panic!("{} has an output with a place in it", self.name));
        let mut numbers = place.rsplit(':').map(|number| number.parse().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(column), Some(line)) => (line, column),
            _ => panic!("{}: {place} is a place", self.name),
        }
    }

    fn read(name: String, path: &Path) -> Case {
        let source = fs::read_to_string(path).expect("a case can be read");
        // A new case has no output yet.
        let output = fs::read_to_string(path.with_extension("stderr")).unwrap_or_default();
        let mut head = source.lines().map(|line| line.strip_prefix("//! "));
        let [cause, advice] = [head.next(), head.next()].map(|line| {
            line.flatten()
                .unwrap_or_else(|| panic!("{name} says what is wrong and what to write"))
                .to_owned()
        });
        let (mut wrong, mut right) = (Vec::new(), Vec::new());
        let mut fixed = String::new();
        let mut replaced = false;
        for line in source.lines() {
            if let Some((indent, instead)) = line.split_once("// instead:") {
                replaced = true;
                let instead = instead.trim();
                if !instead.is_empty() {
                    right.push(instead.to_owned());
                    fixed.push_str(&format!("{indent}{instead}\n"));
                }
            } else if std::mem::take(&mut replaced) {
                wrong.push(line.trim().to_owned());
            } else {
                fixed.push_str(&format!("{line}\n"));
            }
        }
        assert!(!wrong.is_empty(), "{name} marks no line to replace");
        Case {
            name,
            path: path.to_owned(),
            cause,
            advice,
            wrong,
            right,
            fixed,
            source,
            output,
        }
    }
}

fn set(set: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/ui")
        .join(set);
    let mut cases: Vec<Case> = fs::read_dir(folder)
        .expect("the cases are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let stem = path.file_stem().expect("a file has a name");
            Case::read(format!("{set}/{}", stem.display()), &path)
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

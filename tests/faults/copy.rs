//! Makes a copy of the last commit in which faults can be applied.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use lock_tests::faults::Fault;

/// The copy and its build.
pub(crate) struct Copy {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// The target folder of the workspace. A check takes the dependencies from it.
    pub(crate) shared: PathBuf,
    /// The name of the commit.
    pub(crate) commit: String,
}

impl Copy {
    /// Copies the last commit.
    ///
    /// The files keep the time of the commit, so that only files that a fault changes are built again.
    /// The copy touches the files of all `rows`, because an earlier run may have left builds of their
    /// faulty versions.
    pub(crate) fn of_the_last_commit(workspace: &Path, rows: &[Fault]) -> Result<Self, String> {
        let folder = workspace.join("target/faults");
        let copy = Self {
            root: folder.join("copy"),
            target: folder.join("target"),
            shared: match std::env::var_os("CARGO_TARGET_DIR") {
                Some(target) => workspace.join(target),
                None => workspace.join("target"),
            },
            commit: run(workspace, "git", &["rev-parse", "HEAD"])?,
        };
        let _ = fs::remove_dir_all(&copy.root);
        fs::create_dir_all(&copy.root).map_err(|error| format!("{}: {error}", folder.display()))?;
        let archive = folder.join("commit.tar");
        let archive = archive.to_str().ok_or("the path is not UTF-8")?;
        run(workspace, "git", &["archive", "HEAD", "-o", archive])?;
        run(&copy.root, "tar", &["-xf", archive])?;
        for edit in rows.iter().flat_map(|fault| &fault.edits) {
            // A file that is not in the commit is reported when its fault is applied.
            let _ = copy.touch(&edit.file);
        }
        Ok(copy)
    }

    /// Writes the fault into the copy. Dropping the result restores the files.
    pub(crate) fn break_by<'a>(&'a self, fault: &Fault) -> Result<Broken<'a>, String> {
        let faulty = fault.applied_to(&self.root)?;
        let mut broken = Broken {
            copy: self,
            files: Vec::new(),
        };
        for (file, content) in faulty {
            let path = self.root.join(&file);
            let whole = fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
            broken.files.push((file, whole));
            fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(broken)
    }

    fn touch(&self, file: &str) -> std::io::Result<()> {
        #[allow(
            clippy::disallowed_methods,
            reason = "cargo compares the times of files, which are those of the machine"
        )]
        let now = SystemTime::now();
        let file = File::options().append(true).open(self.root.join(file))?;
        file.set_modified(now)
    }
}

/// A copy with a fault in it.
pub(crate) struct Broken<'a> {
    copy: &'a Copy,
    files: Vec<(String, String)>,
}

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        for (file, content) in &self.files {
            if let Err(error) = fs::write(self.copy.root.join(file), content) {
                eprintln!("{file} could not be restored: {error}");
            }
        }
    }
}

/// Runs a program, and returns its output.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("{program} does not run: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(text(&output.stderr))
}

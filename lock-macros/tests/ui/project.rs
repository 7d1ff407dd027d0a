//! Compiles or lints all programs at once, and returns the compiler's messages about each as JSON.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The errors and warnings of each program that have a place.
pub(crate) type Said = BTreeMap<String, Vec<Value>>;

/// A package outside of the workspace with the dependencies of this crate.
pub(crate) struct Project {
    folder: PathBuf,
    manifest: String,
    programs: usize,
}

impl Project {
    pub(crate) fn new(name: &str) -> Project {
        let folder = target().join(name);
        fs::create_dir_all(&folder).expect("the folder can be made");
        let manifest = format!(
            "[package]\nname = {name:?}\nedition = \"2024\"\nautobins = false\n\n[workspace]\n\n\
             [dependencies]\n\
             lock-core = {{ path = {:?}, default-features = false, features = [\"axum\", \"idempotent\", \"once\"] }}\n\
             async-trait = \"*\"\n\
             axum = {{ version = \"*\", default-features = false }}\n\
             serde = {{ version = \"*\", features = [\"derive\"] }}\n\
             tokio = {{ version = \"*\", features = [\"macros\", \"rt\"] }}\n\
             tracing = {{ version = \"*\", features = [\"attributes\"] }}\n",
            workspace().join("lock-core"),
        );
        Project {
            folder,
            manifest,
            programs: 0,
        }
    }

    pub(crate) fn add(&mut self, name: &str, text: &str) {
        write_if_new(&self.folder.join(format!("{name}.rs")), text);
        let _ = write!(
            self.manifest,
            "\n[[bin]]\nname = {name:?}\npath = \"{name}.rs\"\n"
        );
        self.programs += 1;
    }

    /// Runs `cargo check` or `cargo clippy`.
    pub(crate) fn run(self, command: &str) -> Said {
        write_if_new(&self.folder.join("Cargo.toml"), &self.manifest);
        // The versions are those of the workspace, so cargo needs no registry.
        let lock = workspace().join("Cargo.lock");
        fs::copy(lock, self.folder.join("Cargo.lock")).expect("the workspace is locked");
        let output = Command::new(cargo())
            .arg(command)
            .args(["--offline", "--keep-going", "--message-format=json"])
            .arg("--target-dir")
            .arg(target().join("checked"))
            .current_dir(&self.folder)
            .output()
            .expect("cargo runs");
        let mut said = Said::new();
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let Ok(message) = serde_json::from_slice::<Value>(line) else {
                continue;
            };
            if message["target"]["kind"][0] != "bin" {
                continue;
            }
            let program = message["target"]["name"].as_str().expect("it has a name");
            let said = said.entry(program.to_owned()).or_default();
            if primary(&message["message"]).next().is_some() {
                said.push(message["message"].clone());
            }
        }
        assert_eq!(
            said.len(),
            self.programs,
            "not everything was compiled:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said
    }
}

pub(crate) fn primary(said: &Value) -> impl Iterator<Item = &Value> {
    let spans = said["spans"].as_array().into_iter().flatten();
    spans.filter(|span| span["is_primary"] == true)
}

pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the crate is in a workspace")
}

/// Leaves an unchanged file alone, so that cargo does not recompile it.
fn write_if_new(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::write(path, text).expect("the project can be written");
}

//! Finds the examples of the workspace, which tests run as processes.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds the examples from the present source and returns the path of one of them.
///
/// Cargo builds examples only along with the tests of their own package, and a test here must not
/// drive an outdated example. The build uses the flags and the variables of the test command, so that after that
/// command nothing is left to build, and the next one finds all that it has built.
///
/// # Panics
///
/// When the examples cannot be built.
pub fn example(name: &str) -> PathBuf {
    static PROFILE_FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let profile_folder = PROFILE_FOLDER.get_or_init(|| {
        let profile_folder = profile_folder();
        // Cargo sets `CARGO` for the tests that it runs. Without it, the test uses the existing
        // binary.
        if let Some(cargo) = env::var_os("CARGO") {
            build(Command::new(cargo), &profile_folder);
        }
        profile_folder
    });
    let binary = profile_folder.join("examples").join(name);
    assert!(binary.is_file(), "{} is not built", binary.display());
    binary
}

/// Derives `target/debug` from the path of this test: `target/debug/deps/it-<hash>`.
fn profile_folder() -> PathBuf {
    let this = env::current_exe().expect("the test's own path");
    let folder = this.ancestors().nth(2).expect("a folder above deps");
    folder.to_owned()
}

fn build(mut cargo: Command, profile_folder: &Path) {
    let target_folder = profile_folder.parent().expect("a target folder");
    cargo
        .args([
            "build",
            "--workspace",
            "--all-features",
            "--examples",
            "--locked",
        ])
        .arg("--target-dir")
        .arg(target_folder)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    if profile_folder.ends_with("release") {
        cargo.arg("--release");
    }
    // Cargo sets them for this test. Build scripts of dependencies read them, and would run again.
    let of_a_test =
        |name: &str| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_");
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(of_a_test) {
            cargo.env_remove(name);
        }
    }
    let built = cargo.output().expect("cargo starts");
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(
        built.status.success(),
        "the examples do not build:\n{errors}"
    );
}

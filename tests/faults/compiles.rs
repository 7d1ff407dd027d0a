//! Checks that a row which the simulation does not judge compiles.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lock_tests::ChildProcess;
use lock_tests::faults::Fault;

use crate::copy::Copy;
use crate::run::{BUILD, error_of};

/// Checks the packages whose files the fault changes. The copy has the fault.
pub(crate) fn packages_of(copy: &Copy, fault: &Fault) -> Result<(), String> {
    let manifests = fault
        .edits
        .iter()
        .filter_map(|edit| manifest(&copy.root, &edit.file));
    for manifest in manifests.collect::<BTreeSet<_>>() {
        let mut command = Command::new("cargo");
        command
            .args([
                "check",
                "-q",
                "--locked",
                "--all-features",
                "--all-targets",
                "--manifest-path",
            ])
            .arg(manifest)
            .current_dir(&copy.root)
            .env("CARGO_TARGET_DIR", &copy.target)
            .env("CARGO_INCREMENTAL", "1");
        let mut check = ChildProcess::spawn(command);
        match check.wait(BUILD) {
            Some(status) if status.success() => {}
            Some(_) => return Err(error_of(&check.output())),
            None => return Err("the build does not end".to_owned()),
        }
    }
    Ok(())
}

/// Returns the manifest of the package that has a file. `None`: the file is in no package, or not Rust.
fn manifest(root: &Path, file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    if path.extension().is_none_or(|extension| extension != "rs") {
        return None;
    }
    let folders = path
        .ancestors()
        .skip(1)
        .filter(|folder| folder.as_os_str() != "");
    let mut manifests = folders.map(|folder| root.join(folder).join("Cargo.toml"));
    manifests.find(|manifest| manifest.is_file())
}

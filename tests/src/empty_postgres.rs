//! The files of an empty PostgreSQL. `initdb` takes a second of a processor, so it runs once in a process, and each server
//! gets a copy.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::sql::{as_account, own_folder};

static EMPTY: OnceLock<Empty> = OnceLock::new();

struct Empty {
    data: PathBuf,
    /// Removes the folder when its input ends, which the end of this process brings about.
    _remover: Child,
}

/// Puts the files of an empty PostgreSQL into the folder `data` of this one.
///
/// # Panics
///
/// When `initdb` fails.
#[track_caller]
pub(crate) fn copy_to(folder: &Path, initdb: &Path) {
    let empty = EMPTY.get_or_init(|| Empty::make(initdb));
    let mut copy = as_account(Path::new("cp"), folder);
    let copied = copy
        .args(["-R", "-p"])
        .arg(&empty.data)
        .arg("data")
        .status();
    assert!(copied.expect("cp starts").success(), "no copy");
}

impl Empty {
    fn make(initdb: &Path) -> Self {
        let folder = own_folder().keep();
        let data = folder.join("data");
        let mut remove = Command::new("sh");
        remove.args(["-c", "cat >/dev/null; rm -rf \"$0\""]);
        let remover = remove.arg(&folder).stdin(Stdio::piped()).spawn();

        let mut init = as_account(initdb, &folder);
        init.args(["--username=locks", "--auth=trust", "--no-sync", "--pgdata"]);
        let made = init.arg(&data).output().expect("initdb starts");
        let errors = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb fails:\n{errors}");
        Self {
            data,
            _remover: remover.expect("sh starts"),
        }
    }
}

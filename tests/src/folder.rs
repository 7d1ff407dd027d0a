//! Makes temporary folders whose name identifies those that a killed test left behind.

use std::path::Path;

use tempfile::{Builder, TempDir};

/// Makes an empty folder that is removed when the value is dropped.
pub(crate) fn temporary() -> TempDir {
    named().tempdir().expect("a temporary folder")
}

/// Makes such a folder for a server, in memory where the system has a place for that.
///
/// Sentinels and the nodes of a cluster write their configuration and wait for the disk, in the thread that serves.
/// While a build writes to the same disk this takes seconds. A sentinel then mistrusts its clock, and replaces no master
/// for 30 s.
pub(crate) fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir().then(|| named().tempdir_in(memory)) {
        Some(Ok(folder)) => folder,
        _ => temporary(),
    }
}

fn named() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix("lock-tests-");
    builder
}

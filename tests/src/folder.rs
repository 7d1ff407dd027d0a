//! Temporary folders with a name by which what a killed test left behind can be told.

use tempfile::TempDir;

/// An empty folder, removed when this is dropped.
pub(crate) fn temporary() -> TempDir {
    tempfile::Builder::new()
        .prefix("lock-tests-")
        .tempdir()
        .expect("a temporary folder")
}

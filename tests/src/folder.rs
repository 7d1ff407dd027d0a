//! Makes temporary folders whose name identifies those that a killed test left behind.

use tempfile::TempDir;

/// Makes an empty folder that is removed when the value is dropped.
pub(crate) fn temporary() -> TempDir {
    tempfile::Builder::new()
        .prefix("lock-tests-")
        .tempdir()
        .expect("a temporary folder")
}

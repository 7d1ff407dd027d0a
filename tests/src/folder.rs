//! Makes temporary folders whose name identifies those that a killed test left behind.

use std::path::Path;

use rustix::fs::statvfs;
use tempfile::{Builder, TempDir};

/// A database with its log. A container may have much less memory for files.
const ROOM_FOR_A_DATABASE: u64 = 1 << 30;

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

/// Makes such a folder for a database, in memory if there is room. A disk is slow to find room for a thousand new files where
/// as many have just been deleted.
pub(crate) fn for_a_database() -> TempDir {
    let has_room = statvfs("/dev/shm")
        .is_ok_and(|memory| memory.f_bavail * memory.f_frsize > ROOM_FOR_A_DATABASE);
    if has_room { in_memory() } else { temporary() }
}

fn named() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix("lock-tests-");
    builder
}

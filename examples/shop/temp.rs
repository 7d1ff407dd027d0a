//! Makes a file name in the system's temporary folder, which the shop removes when it ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder for this process only, with one file in it. SQLite puts its journal beside the
/// file.
#[derive(Debug)]
pub(crate) struct TempFile {
    folder: PathBuf,
    path: PathBuf,
}

impl TempFile {
    pub(crate) fn new(extension: &str) -> io::Result<Self> {
        let folder = loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("lock-shop-{}-{n}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                // A killed process with the same number left this folder behind.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        let path = folder.join(format!("shop.{extension}"));
        Ok(Self { folder, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm, because it is in the temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

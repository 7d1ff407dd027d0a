//! A PostgreSQL whose disk is full.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::{SqlServer, give_away};

/// The size of the largest file in blocks of 512 bytes: a segment of the server's log, and half a page. So a table ends in
/// the middle of a page, which the server takes for a full disk.
const LARGEST: u32 = (16 * 1024 * 1024 + 4096) / 512;

impl SqlServer {
    /// Starts a PostgreSQL whose disk is full as soon as a table has 16 MiB.
    ///
    /// # Panics
    ///
    /// As [`postgres`](Self::postgres).
    #[track_caller]
    pub fn postgres_on_a_small_disk() -> SqlServer {
        let (folder, program) = SqlServer::empty_postgres();
        let limited = folder.path().join("limited");
        let text = format!(
            "#!/bin/sh\nulimit -f {LARGEST}\nexec '{}' \"$@\"\n",
            program.display()
        );
        fs::write(&limited, text).expect("a folder to write in");
        fs::set_permissions(&limited, Permissions::from_mode(0o755)).expect("the own file");
        give_away(&limited);
        SqlServer::postgres_in(folder, limited, &["fsync=off"])
    }

    /// Puts rows into a table until the disk is full. `row` is the list of a SELECT, with `i` for the number of the row.
    ///
    /// # Panics
    ///
    /// When the disk does not become full.
    #[track_caller]
    pub fn fills_its_disk(&self, table: &str, row: &str) {
        let mut number = 0;
        for step in [5_000, 500, 50, 1] {
            let full = (0..1_000).find_map(|_| {
                let last = number + step;
                let rows = format!(
                    "INSERT INTO {table} SELECT {row} FROM generate_series({number}, {last}) AS i"
                );
                number = last + 1;
                self.try_sql(&rows).err()
            });
            let full = full.expect("the disk becomes full");
            assert!(full.starts_with("53100"), "{full}");
        }
    }
}

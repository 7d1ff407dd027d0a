//! Switches an SQLite file to WAL, in which readers do not wait for the writer.

use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Result};

/// The attempts to switch a new file, and the pause between two: five seconds in all.
const ATTEMPTS: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(5);

/// Switches the file of a connection. It does nothing if the file was switched before.
///
/// The switch reads the file first and asks for its lock later. If another connection does the same, SQLite refuses one
/// of them at once, and `busy_timeout` does not help then.
pub(crate) fn switch_to_wal(connection: &Connection) -> Result<()> {
    let mut switched = Ok(());
    for _ in 0..ATTEMPTS {
        switched = connection.pragma_update(None, "journal_mode", "WAL");
        if !switched.as_ref().is_err_and(is_busy) {
            break;
        }
        thread::sleep(PAUSE);
    }
    switched
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

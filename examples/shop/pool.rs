//! Shares a few SQLite connections: each call borrows one on a blocking thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::db::DbError;
use crate::wal::switch_to_wal;

/// The number of connections. SQLite has one writer at a time, so more would only wait for each
/// other.
const CONNECTIONS: usize = 8;

/// The time that a connection waits for a transaction of another connection or process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Pool {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    places: Arc<Semaphore>,
}

impl Pool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path: Arc::new(path),
            idle: Arc::default(),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        }
    }

    /// Runs `work` on a connection, off the async threads.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop work that has begun. A transaction commits completely or not
    /// at all, and its fence decides whether it may commit.
    /// Work without a fence would need its lock to its end: `LockHandle::keep`.
    pub(crate) async fn run<T, W>(&self, work: W) -> Result<T, DbError>
    where
        T: Send + 'static,
        W: FnOnce(&mut Connection) -> Result<T, DbError> + Send + 'static,
    {
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .map_err(|_| DbError::Closed)?;
        let pool = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            let mut connection = pool.take()?;
            let out = work(&mut connection);
            // After a panic in `work` the connection is dropped instead, which rolls its transaction
            // back.
            pool.idle().push(connection);
            out
        });
        done.await.map_err(|_| DbError::Closed)?
    }

    fn take(&self) -> Result<Connection, DbError> {
        let idle = self.idle().pop();
        match idle {
            Some(connection) => Ok(connection),
            None => Ok(open(&self.path)?),
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the file, which is created if it does not exist.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    switch_to_wal(&connection)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

//! A pgbouncer that gives a connection of the server to one transaction at a time.

use std::fs;
use std::net::SocketAddr;

use tempfile::TempDir;

use super::{SqlServer, as_account, give_away, own_folder};
use crate::{ChildProcess, Port, missing, wait};

/// A pgbouncer in the mode `transaction`, in front of a PostgreSQL.
#[derive(Debug)]
pub struct Pooler {
    // The process ends before its folder is removed.
    _process: ChildProcess,
    port: Port,
    _folder: TempDir,
}

impl Pooler {
    /// Starts a pooler with so many connections to the server.
    ///
    /// # Panics
    ///
    /// As [`start_with`](Self::start_with).
    #[track_caller]
    pub fn start(server: &SqlServer, connections: usize) -> Pooler {
        Pooler::start_with(server, connections, "")
    }

    /// Starts a pooler with more settings, which are lines of its file.
    ///
    /// # Panics
    ///
    /// When there is no pgbouncer (say [`needs!(pgbouncer)`](crate::needs) first), or when it does not start.
    #[track_caller]
    pub fn start_with(server: &SqlServer, connections: usize, settings: &str) -> Pooler {
        let program = missing::pgbouncer().unwrap_or_else(|why| panic!("{why}"));
        let (port, folder) = (Port::free(), own_folder());
        let file = folder.path().join("pgbouncer.ini");
        let (number, upstream) = (port.number(), server.address().port());
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={upstream} user=locks\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {number}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = {connections}\n{settings}"
        );
        fs::write(&file, text).expect("a folder to write in");
        give_away(&file);
        let mut command = as_account(&program, folder.path());
        command.arg(&file);
        let process = ChildProcess::spawn(command);
        let started = process.line(wait::PATIENCE, |line| line.contains("process up"));
        assert!(started.is_some(), "no pooler:\n{}", process.output());
        Pooler {
            _process: process,
            port,
            _folder: folder,
        }
    }

    /// Returns the URL of the server's database by this pooler.
    pub fn url(&self) -> String {
        format!("postgres://locks@{}/postgres", self.address())
    }

    /// Returns the address on which the pooler listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

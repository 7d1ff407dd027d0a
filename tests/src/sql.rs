//! Starts a real PostgreSQL or MariaDB for a test that needs one.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::getuid;
use tempfile::TempDir;

use crate::{ChildProcess, Port, folder, missing, wait};

/// The account under which root runs a server, because both servers refuse to run as root.
const ACCOUNT: &str = "nobody";

/// A server on a loopback port of its own, with one empty database and a user without a password.
///
/// The server ends, and its data is removed, when this value is dropped.
#[derive(Debug)]
pub struct SqlServer {
    // The process ends before its folder is removed.
    process: ChildProcess,
    url: String,
    _port: Port,
    _folder: TempDir,
}

impl SqlServer {
    /// Starts a PostgreSQL.
    ///
    /// # Panics
    ///
    /// When there is none (say [`needs!(postgres)`](crate::needs) first), or when it does not start.
    #[track_caller]
    pub fn postgres() -> SqlServer {
        let program = missing::postgres().unwrap_or_else(|why| panic!("{why}"));
        // `initdb` is beside the program itself, which the search path may only link to.
        let program = fs::canonicalize(program).expect("the program");
        let (port, folder) = (Port::free(), own_folder());
        let data = folder.path().join("data");

        let mut init = as_account(&program.with_file_name("initdb"), folder.path());
        init.args(["--username=locks", "--auth=trust", "--no-sync", "--pgdata"]);
        let made = init.arg(&data).output().expect("initdb starts");
        let errors = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb fails:\n{errors}");

        let mut command = as_account(&program, folder.path());
        command.arg("-D").arg(&data);
        let number = port.number();
        for setting in [
            format!("port={number}"),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "fsync=off".to_owned(),
        ] {
            command.args(["-c", &setting]);
        }
        let url = format!("postgres://locks@127.0.0.1:{number}/postgres");
        SqlServer::start(command, "ready to accept connections", url, port, folder)
    }

    /// Starts a MariaDB, without the tables of its users.
    ///
    /// # Panics
    ///
    /// When there is none (say [`needs!(mariadb)`](crate::needs) first), or when it does not start.
    #[track_caller]
    pub fn mariadb() -> SqlServer {
        let program = missing::mariadb().unwrap_or_else(|why| panic!("{why}"));
        let (port, folder) = (Port::free(), own_folder());
        // Each folder among the data is a database.
        let data = folder.path().join("data");
        for path in [&data, &data.join("shop")] {
            fs::create_dir(path).expect("a new folder");
            give_away(path);
        }

        let mut command = as_account(&program, folder.path());
        let path = |name: &str| folder.path().join(name).display().to_string();
        let number = port.number();
        command.args([
            "--no-defaults".to_owned(),
            "--skip-grant-tables".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--port={number}"),
            format!("--datadir={}", data.display()),
            format!("--socket={}", path("socket")),
            format!("--pid-file={}", path("pid")),
        ]);
        let url = format!("mariadb://root@127.0.0.1:{number}/shop");
        SqlServer::start(command, "ready for connections", url, port, folder)
    }

    #[track_caller]
    fn start(command: Command, ready: &str, url: String, port: Port, folder: TempDir) -> SqlServer {
        let process = ChildProcess::spawn(command);
        let started = process.line(wait::PATIENCE, |line| line.contains(ready));
        assert!(started.is_some(), "no server:\n{}", process.output());
        SqlServer {
            process,
            url,
            _port: port,
            _folder: folder,
        }
    }

    /// Returns the URL of the empty database.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for SqlServer {
    fn drop(&mut self) {
        // A PostgreSQL that is killed leaves a segment of shared memory behind. If it is interrupted, it waits for no client.
        if self.url.starts_with("postgres") {
            self.process.interrupt();
        } else {
            self.process.terminate();
        }
        let _ = self.process.wait(wait::PATIENCE);
    }
}

/// Makes a folder that the account of the server owns.
fn own_folder() -> TempDir {
    let folder = folder::temporary();
    give_away(folder.path());
    folder
}

fn give_away(path: &Path) {
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).expect("root may give files away");
    }
}

fn as_account(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
}

/// Returns the numbers of the account and of its group, if this process runs as root.
fn account() -> Option<(u32, u32)> {
    if !getuid().is_root() {
        return None;
    }
    let accounts = fs::read_to_string("/etc/passwd").expect("the list of accounts");
    let line = accounts
        .lines()
        .find(|line| line.split(':').next() == Some(ACCOUNT));
    let numbers = line.expect("the account").split(':').skip(2);
    let mut numbers = numbers.map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next())
}

//! Starts a real PostgreSQL or MariaDB for a test that needs one.

mod ask;
mod faults;
mod pooler;
mod room;
mod standby;
mod tls;

pub use pooler::Pooler;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::getuid;
use tempfile::TempDir;

use crate::{ChildProcess, Port, Proxy, empty_postgres, folder, missing, wait};

/// The account under which root runs a server, because both servers refuse to run as root.
const ACCOUNT: &str = "nobody";

/// A server on a loopback port of its own, with one empty database and a user without a password.
///
/// The server ends, and its data is removed, when this value is dropped.
#[derive(Debug)]
pub struct SqlServer {
    // The process ends before its folder is removed.
    process: ChildProcess,
    kind: Kind,
    program: PathBuf,
    arguments: Vec<String>,
    url: String,
    port: Port,
    folder: TempDir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Postgres,
    MariaDb,
}

impl SqlServer {
    /// Starts a PostgreSQL, which does not wait for the disk.
    ///
    /// # Panics
    ///
    /// When there is none (say [`needs!(postgres)`](crate::needs) first), or when it does not start.
    #[track_caller]
    pub fn postgres() -> SqlServer {
        SqlServer::postgres_with(&["fsync=off"])
    }

    /// Starts a PostgreSQL with these settings.
    ///
    /// # Panics
    ///
    /// As [`postgres`](Self::postgres), and when it refuses a setting.
    #[track_caller]
    pub fn postgres_with(settings: &[&str]) -> SqlServer {
        let (folder, program) = SqlServer::empty_postgres();
        SqlServer::postgres_in(folder, program, settings)
    }

    /// Returns the folder of an empty PostgreSQL, and its program.
    #[track_caller]
    fn empty_postgres() -> (TempDir, PathBuf) {
        let program = missing::postgres().unwrap_or_else(|why| panic!("{why}"));
        // `initdb` is beside the program itself, which the search path may only link to.
        let program = fs::canonicalize(program).expect("the program");
        let folder = own_folder();
        empty_postgres::copy_to(folder.path(), &program.with_file_name("initdb"));
        (folder, program)
    }

    /// Starts a PostgreSQL on the data of this folder.
    #[track_caller]
    fn postgres_in(folder: TempDir, program: PathBuf, settings: &[&str]) -> SqlServer {
        let port = Port::free();
        let data = folder.path().join("data").display().to_string();
        let listens = format!("port={}", port.number());
        let own = [
            listens.as_str(),
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
        ];
        let mut arguments = vec!["-D".to_owned(), data];
        for setting in own.iter().chain(settings) {
            arguments.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        SqlServer::start(Kind::Postgres, program, arguments, port, folder)
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

        let path = |name: &str| folder.path().join(name).display().to_string();
        let arguments = vec![
            "--no-defaults".to_owned(),
            "--skip-grant-tables".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--port={}", port.number()),
            format!("--datadir={}", data.display()),
            format!("--socket={}", path("socket")),
            format!("--pid-file={}", path("pid")),
        ];
        SqlServer::start(Kind::MariaDb, program, arguments, port, folder)
    }

    #[track_caller]
    fn start(
        kind: Kind,
        program: PathBuf,
        arguments: Vec<String>,
        port: Port,
        folder: TempDir,
    ) -> SqlServer {
        SqlServer {
            process: spawn(kind, &program, &arguments, &folder),
            url: kind.url(port.number()),
            kind,
            program,
            arguments,
            port,
            folder,
        }
    }

    /// Has a PostgreSQL crash, as by a defect of its own, and starts it again on the same data.
    ///
    /// Its connections break, and its open transactions end. What was committed stays.
    ///
    /// # Panics
    ///
    /// When it does not end or start.
    #[track_caller]
    pub fn crash(&mut self) {
        assert_eq!(self.kind, Kind::Postgres, "only PostgreSQL ends so");
        self.process.quit();
        let ended = self.process.wait(wait::PATIENCE);
        assert!(ended.is_some(), "it runs on:\n{}", self.process.output());
        self.process = spawn(self.kind, &self.program, &self.arguments, &self.folder);
    }

    /// Returns the URL of the empty database for this user, who needs no password.
    pub fn url_of(&self, user: &str) -> String {
        self.url.replace("locks@", &format!("{user}@"))
    }

    /// Returns the URL of the empty database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns its URL behind a proxy.
    pub fn url_through(&self, proxy: &Proxy) -> String {
        self.kind.url(proxy.port())
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the last lines of the server's log.
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// Returns the id of the server's process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Kind {
    /// Returns what a line of the server's log says as soon as it serves.
    fn ready(self) -> &'static str {
        match self {
            Kind::Postgres => "ready to accept",
            Kind::MariaDb => "ready for connections",
        }
    }

    fn url(self, port: u16) -> String {
        match self {
            Kind::Postgres => format!("postgres://locks@127.0.0.1:{port}/postgres"),
            Kind::MariaDb => format!("mariadb://root@127.0.0.1:{port}/shop"),
        }
    }
}

#[track_caller]
fn spawn(kind: Kind, program: &Path, arguments: &[String], folder: &TempDir) -> ChildProcess {
    let mut command = as_account(program, folder.path());
    command.args(arguments);
    let process = ChildProcess::spawn(command);
    let started = process.line(wait::PATIENCE, |line| line.contains(kind.ready()));
    assert!(started.is_some(), "no server:\n{}", process.output());
    process
}

impl Drop for SqlServer {
    fn drop(&mut self) {
        // A PostgreSQL that is killed leaves a segment of shared memory behind. If it is interrupted, it waits for no client.
        match self.kind {
            Kind::Postgres => self.ends(),
            Kind::MariaDb => self.process.terminate(),
        }
        let _ = self.process.wait(wait::PATIENCE);
    }
}

/// Makes a folder that the account of the server owns.
pub(crate) fn own_folder() -> TempDir {
    let folder = folder::for_a_database();
    give_away(folder.path());
    folder
}

fn give_away(path: &Path) {
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).expect("root may give files away");
    }
}

pub(crate) fn as_account(program: &Path, folder: &Path) -> Command {
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

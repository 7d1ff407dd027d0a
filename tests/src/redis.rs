//! Starts a real redis-server for each test that needs one.

mod ask;
mod clock;
mod cluster;
mod options;
mod replicas;
mod sentinels;
mod split;
mod tls;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::{ChildProcess, Port, missing, wait};

pub use clock::ServerClock;
pub use cluster::RedisCluster;
pub use options::RedisOptions;
pub use replicas::ReplicaSet;
pub use sentinels::Sentinels;
pub use split::SplitCluster;
pub use tls::{Authority, Certificate, Tls};

/// A redis-server process on a loopback port of its own. The server ends when this value is
/// dropped.
///
/// The server keeps no data over a restart unless [`RedisOptions::append_only`] is set.
#[derive(Debug)]
pub struct RedisServer {
    process: Mutex<Option<ChildProcess>>,
    options: RedisOptions,
    port: Port,
    /// The port on which the server speaks TLS, if it does.
    tls_port: Option<Port>,
    folder: TempDir,
    frozen: AtomicBool,
}

impl RedisServer {
    /// Starts a server with default options; panics as [`RedisOptions::start`] does.
    #[track_caller]
    pub fn start() -> RedisServer {
        RedisServer::options().start()
    }

    /// Returns options for a server that differs from the default.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// Returns `redis://127.0.0.1:<port>`, with the password if there is one.
    pub fn url(&self) -> String {
        let user_info = self
            .options
            .password
            .as_ref()
            .map_or(String::new(), |it| format!(":{it}@"));
        format!("redis://{user_info}{}", self.address())
    }

    /// Returns `rediss://127.0.0.1:<port>`, with the password if there is one.
    ///
    /// # Panics
    ///
    /// When the server does not speak TLS.
    #[track_caller]
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.as_ref().expect("a server that speaks TLS");
        let plain = self.url().replace("redis://", "rediss://");
        plain.replace(&self.address().to_string(), &port.address().to_string())
    }

    /// Returns `rediss` if the server speaks TLS, else `redis`.
    fn scheme(&self) -> &'static str {
        self.tls_port.as_ref().map_or("redis", |_| "rediss")
    }

    /// Returns the port for other servers and clients: the TLS port, if there is one.
    pub(super) fn port_of_others(&self) -> u16 {
        self.tls_port.as_ref().map_or(self.port(), Port::number)
    }

    /// Returns the `unix://<path>` URL of the socket that the server also listens on.
    pub fn socket_url(&self) -> String {
        format!("unix://{}", self.socket())
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns the id of the server's process.
    ///
    /// # Panics
    ///
    /// When the server is down.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.process().as_ref().expect("a running server").pid()
    }

    /// Returns whether the server can answer: it is neither killed nor frozen.
    pub fn is_up(&self) -> bool {
        self.process().is_some() && !self.frozen.load(Ordering::SeqCst)
    }

    /// Kills the server with `kill -9`; the port stays reserved.
    pub fn kill(&self) {
        *self.process() = None;
        self.frozen.store(false, Ordering::SeqCst);
    }

    /// Starts a killed server again on the same port and in the same folder.
    ///
    /// # Panics
    ///
    /// When the server is running, or does not come up.
    #[track_caller]
    pub fn start_again(&self) {
        let mut process = self.process();
        assert!(process.is_none(), "the server is already running");
        self.write_file();
        let child = process.insert(ChildProcess::spawn(self.command()));
        let up = wait::holds_within(wait::PATIENCE, || self.answers() || !child.is_running());
        assert!(
            up && child.is_running(),
            "redis-server does not come up:\n{}",
            child.output()
        );
    }

    /// Kills the server with `kill -9` and starts it again.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        self.start_again();
    }

    /// Kills the server and starts it on an empty folder.
    ///
    /// So the server loses all its data with any options.
    ///
    /// # Panics
    ///
    /// When its folder cannot be emptied, and as [`RedisServer::start_again`].
    #[track_caller]
    pub fn restart_empty(&self) {
        self.kill();
        fs::remove_dir_all(self.folder.path()).expect("a folder to remove");
        fs::create_dir(self.folder.path()).expect("a folder to make");
        self.start_again();
    }

    /// Freezes the process (SIGSTOP), which then accepts connections and answers nothing.
    ///
    /// # Panics
    ///
    /// When the server is down.
    #[track_caller]
    pub fn stop(&self) {
        self.process().as_ref().expect("a running server").stop();
        self.frozen.store(true, Ordering::SeqCst);
    }

    /// Lets a frozen process go on (SIGCONT), which then answers the requests of the meantime.
    ///
    /// # Panics
    ///
    /// When the server is down.
    #[track_caller]
    pub fn cont(&self) {
        self.process().as_ref().expect("a running server").cont();
        self.frozen.store(false, Ordering::SeqCst);
    }

    fn command(&self) -> Command {
        let program = missing::redis().unwrap_or_else(|why| panic!("{why}"));
        let mut command = Command::new(program);
        if self.options.file.is_some() {
            command.arg(self.file());
        }
        command
            .args(["--port", &self.port().to_string(), "--bind", "127.0.0.1"])
            .args(["--unixsocket", &self.socket(), "--save", ""])
            .args(&self.options.arguments)
            .envs(
                self.options
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .current_dir(self.folder.path());
        if let (Some(port), Some(tls)) = (&self.tls_port, &self.options.tls) {
            command.args(["--tls-port", &port.number().to_string()]);
            command.args(tls.arguments());
        }
        command
    }

    /// Writes the server's file unless it exists.
    ///
    /// A restart keeps the lines that the server has written since.
    fn write_file(&self) {
        if let Some(text) = &self.options.file
            && !self.file().exists()
        {
            fs::write(self.file(), text).expect("a folder to write in");
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("redis.conf")
    }

    fn socket(&self) -> String {
        self.folder.path().join("redis.sock").display().to_string()
    }

    fn process(&self) -> MutexGuard<'_, Option<ChildProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

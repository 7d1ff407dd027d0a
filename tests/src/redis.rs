//! A real redis-server for each test that wants one.

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

/// A redis-server process on a loopback port of its own, ended when this is dropped.
///
/// It keeps no data over a restart unless [`RedisOptions::append_only`] says so.
#[derive(Debug)]
pub struct RedisServer {
    process: Mutex<Option<ChildProcess>>,
    options: RedisOptions,
    port: Port,
    /// Where it speaks TLS, if it does.
    tls_port: Option<Port>,
    folder: TempDir,
    frozen: AtomicBool,
}

impl RedisServer {
    /// A server with nothing special about it; panics as [`RedisOptions::start`] does.
    #[track_caller]
    pub fn start() -> RedisServer {
        RedisServer::options().start()
    }

    /// The way to a server with something special about it.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// `redis://127.0.0.1:<port>`, with the password if there is one.
    pub fn url(&self) -> String {
        let user_info = self
            .options
            .password
            .as_ref()
            .map_or(String::new(), |it| format!(":{it}@"));
        format!("redis://{user_info}{}", self.address())
    }

    /// `rediss://127.0.0.1:<port>`, with the password if there is one.
    ///
    /// # Panics
    ///
    /// When it does not speak TLS.
    #[track_caller]
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.as_ref().expect("a server that speaks TLS");
        let plain = self.url().replace("redis://", "rediss://");
        plain.replace(&self.address().to_string(), &port.address().to_string())
    }

    /// `rediss` if it speaks TLS.
    fn scheme(&self) -> &'static str {
        self.tls_port.as_ref().map_or("redis", |_| "rediss")
    }

    /// The port by which other servers and clients find it: that for TLS, if there is one.
    pub(super) fn port_of_others(&self) -> u16 {
        self.tls_port.as_ref().map_or(self.port(), Port::number)
    }

    /// `unix://<path>` of the socket the server listens on too.
    pub fn socket_url(&self) -> String {
        format!("unix://{}", self.socket())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its process's id.
    ///
    /// # Panics
    ///
    /// When it is down.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.process().as_ref().expect("a running server").pid()
    }

    /// Whether it can answer: it was not killed, and is not frozen.
    pub fn is_up(&self) -> bool {
        self.process().is_some() && !self.frozen.load(Ordering::SeqCst)
    }

    /// `kill -9`; the port stays reserved.
    pub fn kill(&self) {
        *self.process() = None;
        self.frozen.store(false, Ordering::SeqCst);
    }

    /// Starts a killed server again: same port, same folder.
    ///
    /// # Panics
    ///
    /// When it runs, or does not come up.
    #[track_caller]
    pub fn start_again(&self) {
        let mut process = self.process();
        assert!(process.is_none(), "the server runs already");
        self.write_file();
        let child = process.insert(ChildProcess::spawn(self.command()));
        let up = wait::holds_within(wait::PATIENCE, || self.answers() || !child.is_running());
        assert!(
            up && child.is_running(),
            "redis-server does not come up:\n{}",
            child.output()
        );
    }

    /// `kill -9`, then started again.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        self.start_again();
    }

    /// `kill -9`, then started again on an empty folder: everything is lost, whatever the options.
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

    /// Freezes the process (SIGSTOP): it accepts connections, and answers nothing.
    ///
    /// # Panics
    ///
    /// When it is down.
    #[track_caller]
    pub fn stop(&self) {
        self.process().as_ref().expect("a running server").stop();
        self.frozen.store(true, Ordering::SeqCst);
    }

    /// Lets a frozen process go on (SIGCONT): it answers what was sent meanwhile.
    ///
    /// # Panics
    ///
    /// When it is down.
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

    /// What a server has written into its file since is kept over a restart.
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

//! A real redis-server with a clock that the test sets.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::Bytes;

/// A reply that takes longer is missing. The test and its servers run at a low priority beside others.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is deleted at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        // A socket's path may not be long.
        let name = format!("lock-sim-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Builds the library that is the servers' clock.
pub fn build_clock(compiler: &Path, folder: &Folder) -> PathBuf {
    let library = folder.path().join("clock.so");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/tests/differential/clock.c"
    );
    let built = Command::new(compiler)
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([library.as_os_str(), source.as_ref()])
        .status();
    assert!(built.expect("the compiler starts").success());
    library
}

pub struct Real {
    child: Child,
    clock: File,
    /// The clock that only runs forward, in microseconds.
    forward: Cell<i64>,
    /// Whether the server notices another time only in its next round.
    pub lags: bool,
    socket: PathBuf,
}

impl Real {
    /// Starts a server that no other machine can reach. Its folder is deleted, so that it can write no snapshot.
    pub fn start(program: &Path, library: &Path, folder: &Folder, micros: i64) -> Self {
        let server = Self::start_with(program, library, folder, "one", micros, &["--port", "0"]);
        fs::remove_dir_all(folder.path().join("one")).expect("the server's folder");
        server
    }

    /// Starts a server with these arguments in a folder of its own.
    pub fn start_with(
        program: &Path,
        library: &Path,
        folder: &Folder,
        name: &str,
        micros: i64,
        arguments: &[&str],
    ) -> Self {
        let home = folder.path().join(name);
        fs::create_dir_all(&home).expect("a folder");
        let socket = folder.path().join(format!("{name}.socket"));
        let _ = fs::remove_file(&socket);
        let path = folder.path().join(format!("{name}.clock"));
        let forward = Cell::new(1_000_000_000);
        fs::write(&path, pair(micros, forward.get())).expect("the clock's file");
        let said = Command::new(program).arg("--version").output();
        let lags = said
            .expect("the server starts")
            .stdout
            .starts_with(b"Valkey");
        let mut command = Command::new(program);
        if lags {
            command.env("LOCK_SIM_CLOCK_STEPS", "1");
        }
        // A sentinel's file is its first argument.
        let child = command
            .args(arguments)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--enable-debug-command", "yes", "--unixsocket"])
            .args([socket.as_os_str(), "--dir".as_ref(), home.as_os_str()])
            .env("LD_PRELOAD", library)
            .env("LOCK_SIM_CLOCK", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let clock = OpenOptions::new().write(true).open(&path);
        let server = Self {
            child: child.expect("the server starts"),
            clock: clock.expect("the clock's file"),
            forward,
            lags,
            socket,
        };
        let start = Instant::now();
        // The clock stands still meanwhile, so that Valkey cannot find the rate of the processor's counter.
        while UnixStream::connect(&server.socket).is_err() {
            assert!(start.elapsed() < PATIENCE, "{} starts", program.display());
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    /// Stops the server's process, until it [goes on](Real::go_on).
    pub fn stop(&self) {
        self.signal("-STOP");
    }

    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &process]).status();
        assert!(sent.expect("kill starts").success());
    }

    /// Sets the time. The forward clock makes the server's next round due.
    pub fn set_clock(&self, micros: i64) {
        self.forward.set(self.forward.get() + 200_000);
        let written = self
            .clock
            .write_all_at(&pair(micros, self.forward.get()), 0);
        written.expect("the clock's file can be written");
    }

    pub fn connect(&self) -> Link {
        let stream = UnixStream::connect(&self.socket).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Link {
            stream,
            received: Bytes::new(),
        }
    }
}

fn pair(micros: i64, forward: i64) -> Bytes {
    [micros, forward].map(i64::to_ne_bytes).concat()
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to a real server.
pub struct Link {
    stream: UnixStream,
    received: Bytes,
}

impl Link {
    pub fn send(&mut self, command: &[Bytes]) {
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for word in command {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        self.stream.write_all(&bytes).expect("the server listens");
    }

    /// Waits until so many bytes have come, or no more come.
    pub fn await_bytes(&mut self, count: usize) {
        while self.received.len() < count && self.read() {}
    }

    /// Takes all that has come.
    pub fn take(&mut self) -> Bytes {
        self.stream.set_nonblocking(true).expect("a socket");
        while self.read() {}
        self.stream.set_nonblocking(false).expect("a socket");
        std::mem::take(&mut self.received)
    }

    /// Sends one more command, whose answer is known, and takes all that comes before this answer.
    pub fn take_before(&mut self, command: &[Bytes], answer: &[u8]) -> Bytes {
        self.send(command);
        while !self.received.ends_with(answer) {
            assert!(self.read(), "the server answers");
        }
        let mut received = std::mem::take(&mut self.received);
        received.truncate(received.len() - answer.len());
        received
    }

    /// Sends a command of the test itself, and returns its reply, which comes in one piece.
    pub fn ask(&mut self, words: &[&str]) -> String {
        String::from_utf8_lossy(&self.ask_bytes(words)).into_owned()
    }

    pub fn ask_bytes(&mut self, words: &[&str]) -> Bytes {
        let command: Vec<Bytes> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        self.send(&command);
        while !is_whole(&self.received) {
            assert!(self.read(), "the server answers {words:?}");
        }
        std::mem::take(&mut self.received)
    }

    /// As [`Link::ask`], for a command that may not fail.
    pub fn order(&mut self, words: &[&str]) {
        let reply = self.ask(words);
        assert!(reply.starts_with('+'), "{words:?}: {reply}");
    }

    fn read(&mut self) -> bool {
        let mut buffer = [0; 1 << 16];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) => {
                let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(is_late, "the server's connection: {error}");
                false
            }
        }
    }
}

/// Returns whether the bytes are a whole line or a whole string.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return false;
    };
    if !matches!(bytes[0], b'$' | b'=') {
        return bytes.ends_with(b"\r\n");
    }
    let length = std::str::from_utf8(&bytes[1..end - 1]).ok();
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    bytes.len() >= end + 1 + length
}

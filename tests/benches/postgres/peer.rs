//! Locks of the crate distributed-lock, in a process of its own: `bash tests/peers/postgres/run` builds it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

pub(super) const NAME: &str = "distributed-lock-postgres 0.2";

/// The program. Each line that it reads is a turn, and each line that it writes the time of a pair in it.
pub(super) struct Peer {
    process: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Peer {
    /// Starts the program that `LOCK_PEER` names; `None`: it names none.
    pub(super) fn start(url: &str) -> Option<Peer> {
        let program = std::env::var_os("LOCK_PEER")?;
        let mut command = Command::new(program);
        command
            .arg(url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("the program of LOCK_PEER");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let pipes = Mutex::new((input, output));
        Some(Peer { process, pipes })
    }

    /// Returns the microseconds of a pair, over all tasks together.
    pub(super) fn turn(&self, tasks: usize, lasts: Duration) -> f64 {
        let mut pipes = self.pipes.lock().expect("one caller");
        writeln!(pipes.0, "{tasks} {}", lasts.as_millis()).expect("a running peer");
        let mut line = String::new();
        pipes.1.read_line(&mut line).expect("a running peer");
        line.trim().parse().expect("a number")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

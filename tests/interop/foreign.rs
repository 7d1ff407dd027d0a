//! The process of a client, which answers requests line by line. `worker.py` describes them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::Failure;
use crate::clients::Client;

/// The longest time for an answer. Only a defect reaches it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest time for a thousand contended rounds.
const PATIENCE_TO_COUNT: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// The client has no such function.
    None,
}

/// A running client. The process ends with this value, and with this program, because its input ends then.
pub(crate) struct Foreign {
    process: Child,
    requests: ChildStdin,
    answers: UnboundedReceiver<String>,
    pub(crate) version: String,
}

impl Foreign {
    pub(crate) async fn start(
        client: &Client,
        ports: &str,
        lock: &str,
    ) -> Result<Foreign, Failure> {
        let mut process = client
            .command(ports, lock)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the client does not start: {error}"))?;
        let requests = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (lines, answers) = unbounded_channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = lines.send(line);
            }
        });
        let version = String::new();
        let mut foreign = Foreign {
            process,
            requests,
            answers,
            version,
        };
        foreign.version = foreign.line(PATIENCE).await?;
        Ok(foreign)
    }

    pub(crate) async fn ask(&mut self, request: &str) -> Result<Answer, Failure> {
        self.send(request)?;
        self.answer(PATIENCE)
            .await?
            .ok_or(format!("no answer to `{request}`"))
    }

    pub(crate) async fn expect(&mut self, request: &str, wanted: Answer) -> Result<(), Failure> {
        let answer = self.ask(request).await?;
        if answer == wanted {
            return Ok(());
        }
        Err(format!(
            "the client answers `{request}` with {answer:?} and not {wanted:?}"
        ))
    }

    /// Sends a request whose answer is read later.
    pub(crate) fn send(&mut self, request: &str) -> Result<(), Failure> {
        writeln!(self.requests, "{request}")
            .map_err(|error| format!("the client has ended: {error}"))
    }

    /// Returns the answer to a request, or `None` if there is none within `limit`.
    pub(crate) async fn answer(&mut self, limit: Duration) -> Result<Option<Answer>, Failure> {
        let Ok(line) = timeout(limit, self.answers.recv()).await else {
            return Ok(None);
        };
        match line.as_deref() {
            Some("yes") => Ok(Some(Answer::Yes)),
            Some("no") => Ok(Some(Answer::No)),
            Some("none") => Ok(Some(Answer::None)),
            Some(other) => Err(format!("the client {other}")),
            None => Err("the client has ended".to_owned()),
        }
    }

    /// Returns when the client has counted all its rounds.
    pub(crate) async fn counted(&mut self) -> Result<(), Failure> {
        match self.line(PATIENCE_TO_COUNT).await?.as_str() {
            "done" => Ok(()),
            other => Err(format!("the client {other}")),
        }
    }

    async fn line(&mut self, limit: Duration) -> Result<String, Failure> {
        let line = timeout(limit, self.answers.recv()).await;
        line.ok()
            .flatten()
            .ok_or("the client has ended, or does not answer".to_owned())
    }

    /// Kills the process with SIGKILL, as an operating system does that is out of memory.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.kill();
    }
}

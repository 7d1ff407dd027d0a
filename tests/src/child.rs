//! Runs child processes that never outlive their test.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use crate::wait;
use crate::watchdog::Watchdog;

/// The number of lines that show why a process failed.
const LINES_KEPT: usize = 10_000;
const LINES_SHOWN: usize = 60;

/// A running command, whose output is kept.
///
/// The command ends, with all its own children, when this value is dropped, when the test panics, and when
/// the test process is killed.
#[derive(Debug)]
pub struct ChildProcess {
    name: String,
    child: Child,
    output: Arc<Output>,
    watchdog: Option<Watchdog>,
}

impl ChildProcess {
    /// Starts `command` in a process group of its own, without input.
    ///
    /// # Panics
    ///
    /// When the command cannot be started.
    #[track_caller]
    pub fn spawn(mut command: Command) -> ChildProcess {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut watchdog = Watchdog::start().expect("sh starts");
        let mut child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let folder = command.get_current_dir();
        let guarded = watchdog.guard(child.id(), folder);
        guarded.expect("the watchdog listens");

        let output = Arc::new(Output::default());
        output.collect(child.stdout.take());
        output.collect(child.stderr.take());
        ChildProcess {
            name,
            child,
            output,
            watchdog: Some(watchdog),
        }
    }

    /// Starts an ignored test of this binary, with these variables in its environment.
    ///
    /// # Panics
    ///
    /// As [`ChildProcess::spawn`].
    #[track_caller]
    pub fn of_test(test: &str, variables: &[(&str, &str)]) -> ChildProcess {
        let mut command = ChildProcess::command_of_test(test);
        command.envs(variables.iter().copied());
        ChildProcess::spawn(command)
    }

    /// Returns the command that runs an ignored test of this binary.
    ///
    /// # Panics
    ///
    /// When the path of this binary is not known.
    pub fn command_of_test(test: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", test, "--ignored", "--nocapture"]);
        command
    }

    /// Returns the id of the process, which is also the id of its group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the process and all its children at once (SIGKILL) and waits for its end.
    pub fn kill(&mut self) {
        // The kill fails only when the group has ended already.
        let _ = kill_process_group(self.id(), Signal::KILL);
        let _ = self.child.wait();
        self.watchdog = None;
    }

    /// Asks the process itself to end (SIGTERM).
    pub fn terminate(&self) {
        let _ = kill_process(self.id(), Signal::TERM);
    }

    /// Interrupts the process itself (SIGINT).
    pub fn interrupt(&self) {
        let _ = kill_process(self.id(), Signal::INT);
    }

    /// Asks the process itself to end at once (SIGQUIT).
    pub fn quit(&self) {
        let _ = kill_process(self.id(), Signal::QUIT);
    }

    /// Freezes the process and its children (SIGSTOP) and waits until all its threads stand still.
    ///
    /// A thread that the signal has not reached yet would go on for a moment.
    ///
    /// # Panics
    ///
    /// When the process has ended.
    #[track_caller]
    pub fn stop(&self) {
        kill_process_group(self.id(), Signal::STOP).expect("a running process");
        let changes = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.id()), changes).expect("a child");
        assert!(
            status.is_some_and(|status| status.stopped()),
            "the process has stopped"
        );
    }

    /// Lets a stopped process go on (SIGCONT).
    ///
    /// # Panics
    ///
    /// When the process has ended.
    #[track_caller]
    pub fn cont(&self) {
        kill_process_group(self.id(), Signal::CONT).expect("a running process");
    }

    /// Waits until the process ends by itself, and until its output is read; `None` when it still runs after `limit`.
    ///
    /// A child of the process that keeps the output open may write later than `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        let mut status = None;
        wait::holds_within(limit, || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        if status.is_some() {
            self.output
                .wait_for_end(limit.saturating_sub(start.elapsed()));
        }
        status
    }

    /// Returns the first line of output, past or to come, that `wanted` accepts.
    ///
    /// `None` when there is no such line within `limit` or before the process ends.
    pub fn line(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> Option<String> {
        self.output.line(limit, wanted)
    }

    /// Waits until the process has printed this line.
    ///
    /// # Panics
    ///
    /// When the process ends without the line, or has not printed it after [`wait::PATIENCE`].
    #[track_caller]
    pub fn says(&self, words: &str) {
        let line = self.line(wait::PATIENCE, |line| line == words);
        assert!(
            line.is_some(),
            "the process has not printed {words:?}:\n{}",
            self.output()
        );
    }

    /// Returns whether the process has printed this line already.
    pub fn has_said(&self, words: &str) -> bool {
        self.line(Duration::ZERO, |line| line == words).is_some()
    }

    /// Returns the rest of the first line that begins with these words.
    ///
    /// # Panics
    ///
    /// As [`ChildProcess::says`].
    #[track_caller]
    pub fn tells(&self, words: &str) -> String {
        let line = self.line(wait::PATIENCE, |line| line.starts_with(words));
        let rest = line.and_then(|line| line.strip_prefix(words).map(str::to_owned));
        rest.unwrap_or_else(|| panic!("no line begins with {words:?}:\n{}", self.output()))
    }

    /// Returns the output so far, of stdout and stderr.
    pub fn output(&self) -> String {
        self.output.tail(LINES_KEPT)
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- the end of the output of {} ---", self.name);
            eprintln!("{}", self.output.tail(LINES_SHOWN));
        }
    }
}

/// The lines a child has written.
#[derive(Debug, Default)]
struct Output {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<String>,
    streams_open: usize,
}

impl Output {
    /// Reads `stream` on a thread of its own.
    ///
    /// So the child never blocks on a full pipe.
    fn collect(self: &Arc<Output>, stream: Option<impl Read + Send + 'static>) {
        let Some(stream) = stream else { return };
        self.with(|lines| lines.streams_open += 1);
        let output = Arc::clone(self);
        std::thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                output.with(|lines| lines.push(String::from_utf8_lossy(&line).into_owned()));
            }
            output.with(|lines| lines.streams_open -= 1);
        });
    }

    fn line(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let start = Instant::now();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(line) = lines.kept.iter().find(|line| wanted(line)) {
                return Some(line.clone());
            }
            let left = limit.checked_sub(start.elapsed())?;
            if lines.streams_open == 0 {
                return None;
            }
            let woken = self.changed.wait_timeout(lines, left);
            lines = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until all that was written is read.
    fn wait_for_end(&self, limit: Duration) {
        self.line(limit, |_| false);
    }

    fn tail(&self, count: usize) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = lines.kept.len().saturating_sub(count);
        lines
            .kept
            .iter()
            .skip(skipped)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn with(&self, change: impl FnOnce(&mut Lines)) {
        change(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

impl Lines {
    fn push(&mut self, line: String) {
        if self.kept.len() == LINES_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(line);
    }
}

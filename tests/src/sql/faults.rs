//! What happens to a PostgreSQL as a whole: it is killed, frozen, and started again.
//!
//! Its processes are in sessions of their own, so a signal to the group of the first one reaches no other.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::{Kind, SqlServer, spawn};
use crate::wait;

impl SqlServer {
    /// Kills all processes of a PostgreSQL at once (SIGKILL), as the loss of its machine does.
    ///
    /// # Panics
    ///
    /// When it does not run, or when a process stays.
    #[track_caller]
    pub fn kill(&mut self) {
        assert_eq!(self.kind, Kind::Postgres, "MariaDB has one process");
        // A process that stands still starts no other one.
        self.process.stop();
        let children = Processes::of(self.pid());
        self.process.kill();
        children.signal(Signal::KILL);
        wait::until("all processes of the server have ended", || {
            !children.exist()
        });
    }

    /// Starts a server that was killed, on its data and its port.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.process = spawn(self.kind, &self.program, &self.arguments, &self.folder);
    }

    /// Freezes all processes of a PostgreSQL (SIGSTOP). Its connections stay open, and it answers nothing.
    ///
    /// # Panics
    ///
    /// When a process does not stand still.
    #[track_caller]
    pub fn stop(&self) {
        self.process.stop();
        let children = Processes::of(self.pid());
        children.signal(Signal::STOP);
        wait::until("all processes of the server stand still", || {
            children.state().all(|state| matches!(state, 'T' | 'Z'))
        });
    }

    /// Lets a frozen PostgreSQL go on (SIGCONT).
    ///
    /// # Panics
    ///
    /// When the server has ended.
    #[track_caller]
    pub fn cont(&self) {
        Processes::of(self.pid()).signal(Signal::CONT);
        self.process.cont();
    }

    /// Ends a PostgreSQL, also one that is frozen or was killed.
    pub(super) fn ends(&mut self) {
        if self.process.is_running() {
            self.cont();
            self.process.interrupt();
            return;
        }
        // The segment of shared memory that a killed server leaves is named in its file, behind its key.
        let file = self.folder.path().join("data/postmaster.pid");
        let text = fs::read_to_string(file).unwrap_or_default();
        let segment = text.lines().nth(6).unwrap_or_default();
        if let Some(id) = segment.split_whitespace().nth(1) {
            let _ = Command::new("ipcrm").args(["-m", id]).status();
        }
    }
}

/// The processes that one process has started.
struct Processes(Vec<Pid>);

impl Processes {
    fn of(parent: u32) -> Processes {
        let all = table().into_iter();
        let children = all.filter(|process| process.parent == parent.to_string());
        Processes(children.filter_map(|process| process.id()).collect())
    }

    fn signal(&self, signal: Signal) {
        for process in &self.0 {
            // It may have ended.
            let _ = kill_process(*process, signal);
        }
    }

    /// Returns the states of those that still exist. A process whose end was not collected is in the state `Z`.
    fn state(&self) -> impl Iterator<Item = char> {
        let all = table().into_iter();
        let own = all.filter(|process| process.id().is_some_and(|id| self.0.contains(&id)));
        own.filter_map(|process| process.state.chars().next())
    }

    fn exist(&self) -> bool {
        self.state().any(|state| state != 'Z')
    }
}

struct Process {
    id: String,
    parent: String,
    state: String,
}

impl Process {
    fn id(&self) -> Option<Pid> {
        self.id.parse().ok().and_then(Pid::from_raw)
    }
}

/// Returns all processes of this machine: on Linux from /proc, because a small system has no `ps`.
fn table() -> Vec<Process> {
    let Ok(processes) = fs::read_dir("/proc") else {
        let mut list = Command::new("ps");
        list.args(["-A", "-o", "pid=", "-o", "ppid=", "-o", "state="]);
        let list = list.output().expect("ps starts").stdout;
        let list = String::from_utf8_lossy(&list).into_owned();
        return list.lines().filter_map(process).collect();
    };
    let stats = processes
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let lines = stats.filter_map(|stat| {
        // The name in parentheses may contain anything.
        let (id, rest) = stat.split_once(" (")?;
        let (_, rest) = rest.rsplit_once(") ")?;
        let mut rest = rest.split(' ');
        let (state, parent) = (rest.next()?, rest.next()?);
        process(&format!("{id} {parent} {state}"))
    });
    lines.collect()
}

fn process(line: &str) -> Option<Process> {
    let mut words = line.split_whitespace().map(str::to_owned);
    Some(Process {
        id: words.next()?,
        parent: words.next()?,
        state: words.next()?,
    })
}

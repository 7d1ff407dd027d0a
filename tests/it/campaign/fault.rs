//! Lists the faults of a round and the parties that each of them affects.

use std::fmt;

/// A fault of a plan, which begins at a time and lasts for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes between a worker and a server arrive this many milliseconds later.
    Slow { worker: usize, node: usize, by: u64 },
    /// The connections between a worker and a server are reset.
    Cut { worker: usize, node: usize },
    /// No byte passes between a worker and a server, and neither gets a FIN or RST.
    BlackHole { worker: usize, node: usize },
    /// The connections that a worker has at the beginning stand still. They deliver at the end, after newer
    /// ones.
    Late { worker: usize, node: usize },
    /// The server receives all requests of a worker again, connection by connection.
    Twice { worker: usize, node: usize },
    /// The worker is stopped by SIGSTOP.
    StopWorker { worker: usize },
    /// The worker is killed by `kill -9`, and another worker takes its place.
    KillWorker { worker: usize },
    /// The server is stopped by SIGSTOP.
    StopServer { node: usize },
    /// The sentinel is stopped by SIGSTOP.
    StopSentinel { index: usize },
    /// The server delays its clients by `CLIENT PAUSE`.
    Pause { node: usize },
    /// The server closes all connections by `CLIENT KILL`.
    KillClients { node: usize },
    /// The server forgets its scripts by `SCRIPT FLUSH`.
    ForgetScripts { node: usize },
    /// The server has no memory left by `maxmemory`: OOM.
    Full { node: usize },
    /// The server lacks replicas by `min-replicas-to-write`: NOREPLICAS.
    NoReplicas { node: usize },
    /// The server becomes a replica of a server that does not exist: READONLY.
    ReadOnly { node: usize },
    /// A snapshot of the server has failed: MISCONF.
    SnapshotFailed { node: usize },
    /// The user of the kit has no right to a command: NOPERM.
    NoRight { node: usize, command: &'static str },
    /// A script blocks the server: BUSY.
    BusyScript { node: usize },
    /// The server's clock steps back by this many milliseconds, for good.
    ClockBack { node: usize, by: u64 },
    /// The server's clock steps ahead by this many milliseconds, for good.
    ClockAhead { node: usize, by: u64 },
    /// Another client sends `FLUSHALL`.
    Flush { node: usize },
    /// Another client deletes a lock by `DEL`.
    DeleteLock { node: usize, key: usize },
    /// Another client deletes all queues by `DEL`.
    DeleteQueues { node: usize },
    /// The server is killed by `kill -9` and starts again without its data.
    Restart { node: usize },
    /// A replica takes the place of the master without a cause.
    FailOver,
}

/// The parties that a fault may keep from their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// No worker may notice the fault.
    Nobody,
    /// One worker, in all its work.
    Worker(usize),
    /// One worker, in its messages to one server.
    Link(usize, usize),
    /// All workers, in their messages to one server.
    Node(usize),
}

impl Fault {
    pub(super) fn scope(self) -> Scope {
        match self {
            Fault::Slow { worker, node, .. }
            | Fault::Cut { worker, node }
            | Fault::BlackHole { worker, node }
            | Fault::Late { worker, node } => Scope::Link(worker, node),
            Fault::StopWorker { worker } | Fault::KillWorker { worker } => Scope::Worker(worker),
            // None of these faults may change anything: a server that receives requests twice, a sentinel that
            // hangs, a script that the server does not know, and a clock that is behind.
            Fault::Twice { .. }
            | Fault::StopSentinel { .. }
            | Fault::ForgetScripts { .. }
            | Fault::ClockBack { .. }
            // An owner that loses a lock by one of these faults is told of the loss, and no request is refused.
            | Fault::ClockAhead { .. }
            | Fault::Flush { .. }
            | Fault::DeleteLock { .. }
            | Fault::DeleteQueues { .. } => Scope::Nobody,
            Fault::StopServer { node }
            | Fault::Pause { node }
            | Fault::KillClients { node }
            | Fault::Full { node }
            | Fault::NoReplicas { node }
            | Fault::ReadOnly { node }
            | Fault::SnapshotFailed { node }
            | Fault::NoRight { node, .. }
            | Fault::BusyScript { node }
            | Fault::Restart { node } => Scope::Node(node),
            Fault::FailOver => Scope::Node(0),
        }
    }

    /// Returns the resource of the fault, because two faults of one resource are never at once.
    pub(super) fn resource(self) -> (u8, usize, usize) {
        match self {
            Fault::Slow { worker, node, .. }
            | Fault::Cut { worker, node }
            | Fault::BlackHole { worker, node }
            | Fault::Late { worker, node }
            | Fault::Twice { worker, node } => (0, worker, node),
            Fault::StopWorker { worker } | Fault::KillWorker { worker } => (1, worker, 0),
            Fault::StopSentinel { index } => (2, index, 0),
            Fault::StopServer { node }
            | Fault::Pause { node }
            | Fault::KillClients { node }
            | Fault::ForgetScripts { node }
            | Fault::Full { node }
            | Fault::NoReplicas { node }
            | Fault::ReadOnly { node }
            | Fault::SnapshotFailed { node }
            | Fault::NoRight { node, .. }
            | Fault::BusyScript { node }
            | Fault::Flush { node }
            | Fault::DeleteLock { node, .. }
            | Fault::DeleteQueues { node }
            | Fault::Restart { node } => (3, node, 0),
            Fault::FailOver => (3, 0, 0),
            Fault::ClockBack { .. } | Fault::ClockAhead { .. } => (4, 0, 0),
        }
    }

    pub(super) fn steps_a_clock(self) -> bool {
        matches!(self, Fault::ClockBack { .. } | Fault::ClockAhead { .. })
    }

    /// Returns whether the fault allows two owners of a lock, according to README.
    pub(super) fn loses_locks(self) -> bool {
        matches!(
            self,
            Fault::Flush { .. }
                | Fault::DeleteLock { .. }
                | Fault::Restart { .. }
                | Fault::FailOver
                | Fault::ClockAhead { .. }
        )
    }

    /// Returns whether the fault removes queues that waiters rely on.
    pub(super) fn loses_queues(self) -> bool {
        self.loses_locks() || matches!(self, Fault::DeleteQueues { .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

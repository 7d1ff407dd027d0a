//! The faults of a round, and whom each of them concerns.

use std::fmt;

/// Something that goes wrong: from a time of the plan on, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes between a worker and a server arrive that many milliseconds later.
    Slow { worker: usize, node: usize, by: u64 },
    /// The connections between a worker and a server are reset.
    Cut { worker: usize, node: usize },
    /// No byte passes between a worker and a server, and neither is told.
    BlackHole { worker: usize, node: usize },
    /// The connections that a worker has at the beginning stand still, and deliver at the end, after newer ones.
    Late { worker: usize, node: usize },
    /// The server receives once more what it has received from a worker, connection by connection.
    Twice { worker: usize, node: usize },
    /// SIGSTOP.
    StopWorker { worker: usize },
    /// `kill -9`, and another worker in its place.
    KillWorker { worker: usize },
    /// SIGSTOP.
    StopServer { node: usize },
    /// SIGSTOP.
    StopSentinel { index: usize },
    /// `CLIENT PAUSE`.
    Pause { node: usize },
    /// `CLIENT KILL`.
    KillClients { node: usize },
    /// `SCRIPT FLUSH`.
    ForgetScripts { node: usize },
    /// `maxmemory`: OOM.
    Full { node: usize },
    /// `min-replicas-to-write`: NOREPLICAS.
    NoReplicas { node: usize },
    /// `REPLICAOF` a server that does not exist: READONLY.
    ReadOnly { node: usize },
    /// A snapshot has failed: MISCONF.
    SnapshotFailed { node: usize },
    /// The user of the kit may not call a command: NOPERM.
    NoRight { node: usize, command: &'static str },
    /// A script that runs long: BUSY.
    BusyScript { node: usize },
    /// The server's clock steps back by that many milliseconds, for good.
    ClockBack { node: usize, by: u64 },
    /// The server's clock steps ahead by that many milliseconds, for good.
    ClockAhead { node: usize, by: u64 },
    /// `FLUSHALL` by a stranger.
    Flush { node: usize },
    /// `DEL` of a lock by a stranger.
    DeleteLock { node: usize, key: usize },
    /// `DEL` of all queues by a stranger.
    DeleteQueues { node: usize },
    /// `kill -9` of a server, which starts again without its data.
    Restart { node: usize },
    /// A replica takes the place of the master, without cause.
    FailOver,
}

/// Whom a fault may keep from its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// No worker may notice.
    Nobody,
    /// One worker, in all that it does.
    Worker(usize),
    /// One worker, where it talks with one server.
    Link(usize, usize),
    /// All that talk with one server.
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
            // What a server hears twice is to change nothing, nor is a sentinel that hangs, a script that is not
            // known, or a clock that is behind.
            Fault::Twice { .. }
            | Fault::StopSentinel { .. }
            | Fault::ForgetScripts { .. }
            | Fault::ClockBack { .. }
            // Who loses a lock by these is told so, and is not refused.
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

    /// What it takes for itself: two faults of one resource are never at once.
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

    /// Whether two owners of a lock are possible by it, as README says.
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

    /// Whether a stranger takes away what waiters rely on.
    pub(super) fn loses_queues(self) -> bool {
        self.loses_locks() || matches!(self, Fault::DeleteQueues { .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

//! What is wrong with a server's settings, as far as locks are concerned.

mod clocks;
mod judge;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::clocks::{Reading, disagreements};
pub(crate) use self::judge::{Facts, Persistence, Role};

/// A setting of a server that endangers locks, and what to change:
/// [`LockManager::audit`](crate::LockManager::audit).
///
/// `Display` is one sentence for a log or an operator. Neither it nor `Debug` shows a key, a user or a
/// password.
///
/// # Examples
///
/// ```no_run
/// # async fn example(locks: &lock_core::LockManager) -> Result<(), lock_core::Error> {
/// use lock_core::FindingKind;
///
/// for finding in locks.audit().await? {
///     if finding.kind() != FindingKind::SnapshotsOnly {
///         eprintln!("{}: {finding}", finding.code());
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    kind: FindingKind,
    server: Option<Arc<str>>,
    text: String,
}

/// What a [`Finding`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// Short of memory, the server deletes locks that are held (`maxmemory-policy volatile-*`).
    EvictsLocks,
    /// Short of memory, it deletes locks, and what keeps fencing tokens rising (`allkeys-*`).
    EvictsEverything,
    /// Its `maxmemory` is nearly used up: soon new locks are refused.
    NearlyFull,
    /// A restart loses every lock.
    NoPersistence,
    /// A restart loses the locks since the last snapshot.
    SnapshotsOnly,
    /// Its log is never synced: a machine that fails loses locks (`appendfsync no`).
    UnsyncedLog,
    /// Its clock and this machine's are far apart.
    ClockDiffers,
    /// Its clock and that of another server of this manager are apart.
    ClocksDisagree,
    /// Fewer replicas are connected than `replica_acks` asks for.
    TooFewReplicas,
    /// It is a replica, which accepts no lock.
    ReadOnly,
    /// It refuses every write, as fewer replicas are connected than `min-replicas-to-write`.
    RefusesWrites,
    /// The user may not subscribe: waiters look again and again instead of being told.
    MayNotSubscribe,
    /// The user may not publish: the waiters of other processes are not told of a release.
    MayNotPublish,
    /// The user may not `WAIT`, which `replica_acks` needs: nothing can be locked.
    MayNotWait,
    /// The user may not ask `INFO`: most of this could not be looked at.
    MayNotAsk,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, server: Option<Arc<str>>, text: String) -> Self {
        Self { kind, server, text }
    }

    /// What it is about.
    #[must_use]
    pub fn kind(&self) -> FindingKind {
        self.kind
    }

    /// A stable code for machines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The server: its host and port, or the path of its socket.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Tells the log.
    #[cfg(feature = "redis")]
    pub(crate) fn warn(&self) {
        tracing::warn!(
            code = self.code(),
            server = self.server().unwrap_or_default(),
            "{self}"
        );
    }
}

impl FindingKind {
    /// A stable code for machines.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            FindingKind::EvictsLocks => "evicts_locks",
            FindingKind::EvictsEverything => "evicts_everything",
            FindingKind::NearlyFull => "nearly_full",
            FindingKind::NoPersistence => "no_persistence",
            FindingKind::SnapshotsOnly => "snapshots_only",
            FindingKind::UnsyncedLog => "unsynced_log",
            FindingKind::ClockDiffers => "clock_differs",
            FindingKind::ClocksDisagree => "clocks_disagree",
            FindingKind::TooFewReplicas => "too_few_replicas",
            FindingKind::ReadOnly => "read_only",
            FindingKind::RefusesWrites => "refuses_writes",
            FindingKind::MayNotSubscribe => "may_not_subscribe",
            FindingKind::MayNotPublish => "may_not_publish",
            FindingKind::MayNotWait => "may_not_wait",
            FindingKind::MayNotAsk => "may_not_ask",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

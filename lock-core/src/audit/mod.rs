//! Finds settings of servers that endanger locks.
//!
//! A finding is a warning and not an error, because each of these settings is right for some service. A
//! setting that the server does not tell is not judged.

mod clocks;
mod judge;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::clocks::{Reading, disagreements};
pub(crate) use self::judge::{Facts, Persistence, Role};

/// A setting of a server that endangers locks, with the change to make.
///
/// [`LockManager::audit`](crate::LockManager::audit) returns the findings.
///
/// `Display` shows one sentence for a log or an operator. Neither `Display` nor `Debug` shows a
/// key, a user or a password.
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

/// The subject of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// When memory is short, the server deletes held locks (`maxmemory-policy volatile-*`).
    EvictsLocks,
    /// When memory is short, the server deletes locks and the fencing state (`allkeys-*`).
    EvictsEverything,
    /// The server's `maxmemory` is nearly used up, and new locks will soon be refused.
    NearlyFull,
    /// A restart loses every lock.
    NoPersistence,
    /// A restart loses the locks since the last snapshot.
    SnapshotsOnly,
    /// The server does not sync its log in time, so a machine that fails loses locks (`appendfsync no`; on PostgreSQL
    /// `fsync` or `synchronous_commit` off).
    UnsyncedLog,
    /// The server's clock and this machine's differ by much.
    ClockDiffers,
    /// The clocks of two servers of this manager differ.
    ClocksDisagree,
    /// Fewer replicas are connected than `replica_acks` needs.
    TooFewReplicas,
    /// The server is a replica, which accepts no lock.
    ReadOnly,
    /// The server refuses every write, because fewer replicas are connected than
    /// `min-replicas-to-write`.
    RefusesWrites,
    /// The user may not subscribe, so waiters poll instead of being told.
    MayNotSubscribe,
    /// The user may not publish, so other processes' waiters miss releases.
    MayNotPublish,
    /// The user may not call `WAIT`, which `replica_acks` needs, so no lock can be acquired.
    MayNotWait,
    /// The user may not call `INFO`, so most settings could not be checked.
    MayNotAsk,
    /// PostgreSQL has standbys, and none is synchronous, so a failover can make two owners.
    AsynchronousStandby,
    /// PostgreSQL removes no old rows (`autovacuum` off).
    NoVacuum,
    /// The log of PostgreSQL shows the keys of locks.
    LogsKeys,
    /// A transaction may stay open for ever (`idle_in_transaction_session_timeout` 0).
    EndlessTransactions,
    /// A transaction of the database is more than a minute old, so the table of the locks grows.
    OldTransaction,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, server: Option<Arc<str>>, text: String) -> Self {
        Self { kind, server, text }
    }

    /// Returns the subject of the finding.
    #[must_use]
    pub fn kind(&self) -> FindingKind {
        self.kind
    }

    /// Returns a stable, machine-readable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Returns the server, as its host and port or the path of its socket.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Logs the finding as a warning.
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub(crate) fn warn(&self) {
        tracing::warn!(
            code = self.code(),
            server = self.server().unwrap_or_default(),
            "{self}"
        );
    }
}

impl FindingKind {
    /// Returns a stable, machine-readable code.
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
            FindingKind::AsynchronousStandby => "asynchronous_standby",
            FindingKind::NoVacuum => "no_vacuum",
            FindingKind::LogsKeys => "logs_keys",
            FindingKind::EndlessTransactions => "endless_transactions",
            FindingKind::OldTransaction => "old_transaction",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

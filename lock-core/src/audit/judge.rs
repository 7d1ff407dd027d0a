//! Turns the facts about a server into findings. Pure; unknown facts are not judged.

use std::sync::Arc;
use std::time::Duration;

use super::{Finding, FindingKind, Reading};

/// The difference between a server's clock and this machine's that is reported.
const FAR_APART: Duration = Duration::from_secs(10);
/// The use of `maxmemory` that is reported, in percent.
const NEARLY_FULL: u64 = 90;

/// The facts that were read from one server; `None` if it did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) role: Option<Role>,
    /// The server is one of several, of which only some are masters.
    pub(crate) may_be_replica: bool,
    /// The number of replicas that are connected at the moment.
    pub(crate) replicas: Option<u64>,
    /// The memory limit; 0 means no limit.
    pub(crate) max_memory: Option<u64>,
    pub(crate) used_memory: Option<u64>,
    pub(crate) eviction_policy: Option<String>,
    pub(crate) persistence: Option<Persistence>,
    pub(crate) min_replicas: Option<u64>,
    pub(crate) clock: Option<Reading>,
    pub(crate) forbids_info: bool,
    pub(crate) forbids_subscribing: bool,
    pub(crate) forbids_publishing: bool,
    pub(crate) forbids_waiting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Master,
    Replica,
}

/// The data that a server finds after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Nothing,
    Snapshots,
    /// There is no log. The server did not say whether there are snapshots.
    NoLog,
    /// An append-only file.
    Log {
        never_synced: bool,
    },
}

impl Facts {
    /// Judges the facts, for locks that `replica_acks` replicas have to confirm.
    pub(crate) fn findings(&self, server: &Arc<str>, replica_acks: u16) -> Vec<Finding> {
        let judgements = [
            self.memory(),
            self.fullness(),
            self.after_a_restart(),
            self.clock_of_its_own(),
            self.replicas_for(replica_acks),
            self.writes(),
        ];
        self.rights(replica_acks)
            .chain(judgements.into_iter().flatten())
            .map(|(kind, text)| Finding::new(kind, Some(Arc::clone(server)), text))
            .collect()
    }

    fn rights(&self, replica_acks: u16) -> impl Iterator<Item = (FindingKind, String)> {
        let forbidden = [
            (
                self.forbids_info,
                FindingKind::MayNotAsk,
                "the user may not call INFO, so an acquire sends one more command than needed, and the \
                 server's settings could not be checked; ACL SETUSER … +info",
            ),
            (
                self.forbids_subscribing,
                FindingKind::MayNotSubscribe,
                "the user may not subscribe to the channels of this namespace, so waiters poll a lock \
                 instead of being told; ACL SETUSER … +subscribe &<namespace>!m:*",
            ),
            (
                self.forbids_publishing,
                FindingKind::MayNotPublish,
                "the user may not publish to the channels of this namespace, so waiters of other processes \
                 are not told of a release; ACL SETUSER … +publish &<namespace>!m:*",
            ),
            (
                self.forbids_waiting && replica_acks > 0,
                FindingKind::MayNotWait,
                "the user may not call WAIT, which replica_acks needs, so no lock can be acquired; \
                 ACL SETUSER … +wait, or replica_acks(0)",
            ),
        ];
        let missing = forbidden.into_iter().filter(|(forbidden, ..)| *forbidden);
        missing.map(|(_, kind, text)| (kind, text.to_owned()))
    }

    fn memory(&self) -> Judgement {
        let policy = self.eviction_policy.as_deref()?;
        if self.max_memory == Some(0) {
            return None;
        }
        let (kind, victims) = if policy.starts_with("volatile-") {
            (FindingKind::EvictsLocks, "locks that are held")
        } else if policy.starts_with("allkeys-") {
            (
                FindingKind::EvictsEverything,
                "locks that are held, and the high-water mark that keeps fencing tokens rising",
            )
        } else {
            return None;
        };
        Some((
            kind,
            format!(
                "when memory is short, the server deletes {victims}, so a key can have two owners; \
                 set maxmemory-policy noeviction (it is {policy}), or give locks a server of their own"
            ),
        ))
    }

    fn fullness(&self) -> Judgement {
        let (max, used) = (self.max_memory?, self.used_memory?);
        if max == 0 || used.saturating_mul(100) < max.saturating_mul(NEARLY_FULL) {
            return None;
        }
        Some((
            FindingKind::NearlyFull,
            format!(
                "{used} of {max} bytes of maxmemory are used; when it is full, new locks are refused, or \
                 other locks evicted; raise maxmemory, or give locks a server of their own"
            ),
        ))
    }

    fn after_a_restart(&self) -> Judgement {
        let (kind, text) = match self.persistence? {
            Persistence::Nothing => (
                FindingKind::NoPersistence,
                "a restart makes the server forget every lock, and grant held locks to other owners; \
                 set appendonly yes",
            ),
            Persistence::Snapshots => (
                FindingKind::SnapshotsOnly,
                "a restart makes the server forget the locks since its last snapshot, and grant them to \
                 other owners; set appendonly yes",
            ),
            Persistence::NoLog => (
                FindingKind::SnapshotsOnly,
                "without an append-only file, a restart makes the server forget the locks since its last \
                 snapshot, or all, and grant them to other owners; set appendonly yes",
            ),
            Persistence::Log { never_synced: true } => (
                FindingKind::UnsyncedLog,
                "the append-only file is never synced, so a machine that loses power forgets the locks of \
                 up to half a minute; set appendfsync everysec, or always",
            ),
            Persistence::Log { .. } => return None,
        };
        Some((kind, text.to_owned()))
    }

    fn clock_of_its_own(&self) -> Judgement {
        let difference = self.clock?.difference();
        (difference >= FAR_APART).then(|| {
            let text = format!(
                "its clock and this machine's differ by {difference:?}; locks end by the server's clock, so \
                 if that clock is corrected by a step, locks end at once or last too long, and fencing \
                 tokens may repeat; run chrony or ntpd on both"
            );
            (FindingKind::ClockDiffers, text)
        })
    }

    fn replicas_for(&self, wanted: u16) -> Judgement {
        if wanted == 0 || self.role == Some(Role::Replica) || self.replicas? >= u64::from(wanted) {
            return None;
        }
        let replicas = self.replicas?;
        Some((
            FindingKind::TooFewReplicas,
            format!(
                "replica_acks needs {wanted} replicas and {replicas} are connected, so no lock can be \
                 acquired, and held locks are lost at their deadlines; attach replicas, or lower replica_acks"
            ),
        ))
    }

    fn writes(&self) -> Judgement {
        if self.role == Some(Role::Replica) {
            if self.may_be_replica {
                return None;
            }
            let text = "this server is a replica, which accepts no lock; write the master's address in the URL";
            return Some((FindingKind::ReadOnly, text.to_owned()));
        }
        let (needed, replicas) = (self.min_replicas?, self.replicas?);
        (needed > replicas).then(|| {
            let text = format!(
                "min-replicas-to-write is {needed} and {replicas} replicas are connected, so the server \
                 refuses every write, releases and renewals too; attach replicas, or set \
                 min-replicas-to-write 0 and use replica_acks instead"
            );
            (FindingKind::RefusesWrites, text)
        })
    }
}

type Judgement = Option<(FindingKind, String)>;

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;

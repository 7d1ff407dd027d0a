//! From what a server says of itself to findings. Pure: what could not be read is not judged.

use std::sync::Arc;
use std::time::Duration;

use super::{Finding, FindingKind, Reading};

/// This machine's clock and a server's are wrong together rarely; this far apart, one of them is.
const FAR_APART: Duration = Duration::from_secs(10);
/// In parts of a hundred of `maxmemory`.
const NEARLY_FULL: u64 = 90;

/// What was read of one server. `None`: it did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) role: Option<Role>,
    /// Whether it is one of several, of which only some are masters.
    pub(crate) may_be_replica: bool,
    /// Replicas that follow it at the moment.
    pub(crate) replicas: Option<u64>,
    /// 0: as much memory as there is.
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

/// What a restart finds again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Nothing,
    Snapshots,
    /// There is no log. Whether there are snapshots, the server did not say.
    NoLog,
    /// An append-only file.
    Log {
        never_synced: bool,
    },
}

impl Facts {
    /// What is wrong with it, for locks that `replica_acks` replicas have to acknowledge.
    pub(crate) fn findings(&self, server: &Arc<str>, replica_acks: u16) -> Vec<Finding> {
        let judgements = [
            self.rights(replica_acks),
            vec![
                self.memory(),
                self.fullness(),
                self.after_a_restart(),
                self.clock_of_its_own(),
                self.replicas_for(replica_acks),
                self.writes(),
            ],
        ];
        judgements
            .into_iter()
            .flatten()
            .flatten()
            .map(|(kind, text)| Finding::new(kind, Some(Arc::clone(server)), text))
            .collect()
    }

    fn rights(&self, replica_acks: u16) -> Vec<Judgement> {
        let forbidden = [
            (
                self.forbids_info,
                FindingKind::MayNotAsk,
                "the user may not ask INFO: an acquire sends one command more than it has to, and the \
                 server's settings could not be looked at; ACL SETUSER … +info",
            ),
            (
                self.forbids_subscribing,
                FindingKind::MayNotSubscribe,
                "the user may not subscribe to the channels of this namespace: waiting for a lock falls \
                 back to looking every 250 ms to 2 s; ACL SETUSER … +subscribe &<namespace>!m:*",
            ),
            (
                self.forbids_publishing,
                FindingKind::MayNotPublish,
                "the user may not publish to the channels of this namespace: other processes that wait \
                 for a lock are not told of its release; ACL SETUSER … +publish &<namespace>!m:*",
            ),
            (
                self.forbids_waiting && replica_acks > 0,
                FindingKind::MayNotWait,
                "the user may not WAIT, which replica_acks needs: nothing can be locked; \
                 ACL SETUSER … +wait, or replica_acks(0)",
            ),
        ];
        let told = forbidden.into_iter().filter(|(forbidden, ..)| *forbidden);
        told.map(|(_, kind, text)| Some((kind, text.to_owned())))
            .collect()
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
                "locks that are held, and the mark that keeps fencing tokens rising",
            )
        } else {
            return None;
        };
        Some((
            kind,
            format!(
                "short of memory the server deletes {victims}: two owners at a time; \
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
                "{used} of {max} bytes of maxmemory are used: when it is full new locks are refused, or \
                 others evicted; raise maxmemory, or give locks a server of their own"
            ),
        ))
    }

    fn after_a_restart(&self) -> Judgement {
        let (kind, text) = match self.persistence? {
            Persistence::Nothing => (
                FindingKind::NoPersistence,
                "a server that restarts has forgotten every lock, and gives those that are held to others; \
                 set appendonly yes",
            ),
            Persistence::Snapshots => (
                FindingKind::SnapshotsOnly,
                "a server that restarts has forgotten the locks since its last snapshot, and gives those \
                 that are held to others; set appendonly yes",
            ),
            Persistence::NoLog => (
                FindingKind::SnapshotsOnly,
                "without an append-only file a server that restarts has forgotten the locks since its last \
                 snapshot, or all, and gives those that are held to others; set appendonly yes",
            ),
            Persistence::Log { never_synced: true } => (
                FindingKind::UnsyncedLog,
                "the append-only file is never synced: a machine that loses power forgets the locks of up \
                 to half a minute; set appendfsync everysec, or always",
            ),
            Persistence::Log { .. } => return None,
        };
        Some((kind, text.to_owned()))
    }

    fn clock_of_its_own(&self) -> Judgement {
        let difference = self.clock?.difference();
        (difference >= FAR_APART).then(|| {
            let text = format!(
                "its clock and this machine's are {difference:?} apart: locks end by the server's, and when \
                 that is set right by a step they end at once, or last too long, and fencing tokens may \
                 repeat; run chrony or ntpd on both"
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
                "replica_acks asks for {wanted} replicas and {replicas} are connected: nothing can be \
                 locked, and what is held is lost at its deadline; attach replicas, or lower replica_acks"
            ),
        ))
    }

    fn writes(&self) -> Judgement {
        if self.role == Some(Role::Replica) {
            if self.may_be_replica {
                return None;
            }
            let text = "this server is a replica, and accepts no lock; write the master's address in the URL";
            return Some((FindingKind::ReadOnly, text.to_owned()));
        }
        let (needed, replicas) = (self.min_replicas?, self.replicas?);
        (needed > replicas).then(|| {
            let text = format!(
                "min-replicas-to-write is {needed} and {replicas} replicas are connected: the server refuses \
                 every write, releases and renewals too; attach replicas, or set min-replicas-to-write 0 and \
                 let replica_acks see to it"
            );
            (FindingKind::RefusesWrites, text)
        })
    }
}

type Judgement = Option<(FindingKind, String)>;

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;

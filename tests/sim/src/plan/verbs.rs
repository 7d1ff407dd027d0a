//! The kinds of work.

use super::Topology;
use crate::rng::Rng;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Acquire,
    Ping,
    Forget,
    Foreign,
    /// A body under a lock, and calls inside of it.
    Run,
    /// Work that keeps a lock beyond its guard or its body.
    Keep,
    /// Several calls in one task, which polls only some of them at a time.
    Neglect,
    /// A candidate for a leadership.
    Lead,
    /// A job that runs once in each tick.
    Every,
    Records,
    Cooldown,
    Several,
    Read,
    Permits,
    Downgrade,
    /// An operator looks at locks and frees them.
    Operate,
    /// An owner passes its lock on by a ticket, and another one goes on with it.
    PassOn,
    /// More readers than a server lets in at once.
    Crowd,
}

impl Verb {
    /// The kinds beside plain locks, in groups. The kinds of one history are of one group, because rules of the ledger know
    /// what the kinds of their group do to each other.
    const GROUPS: &[&[Self]] = &[
        &[Self::Ping, Self::Forget],
        &[Self::Ping, Self::Foreign],
        &[Self::Records, Self::Cooldown, Self::Several],
        Self::JOBS,
        &[Self::Read, Self::Permits, Self::Downgrade],
        Self::ORDERS,
    ];
    /// Bodies, leaders and jobs, and calls that are not polled.
    pub(super) const JOBS: &[Self] = &[
        Self::Run,
        Self::Keep,
        Self::Neglect,
        Self::Lead,
        Self::Every,
    ];
    /// Locks end by orders of an operator, or go from owner to owner.
    pub(super) const ORDERS: &[Self] = &[Self::Operate, Self::PassOn];
    /// The kinds whose owners share a key.
    pub(super) const SHARES: [Self; 4] = [Self::Read, Self::Permits, Self::Downgrade, Self::Crowd];

    /// Returns whether a topology offers this kind.
    fn is_on(self, topology: Topology) -> bool {
        match self {
            Self::Acquire => true,
            Self::Ping | Self::Run | Self::Keep | Self::Neglect | Self::Lead => {
                topology != Topology::Cluster
            }
            Self::Forget => !matches!(topology, Topology::Redlock | Topology::Cluster),
            // Each server of a quorum, and a new master, ends a key by its own clock.
            Self::Every => topology.is_alone() || topology == Topology::Cluster,
            Self::Foreign => matches!(topology, Topology::One | Topology::Redlock),
            Self::Records | Self::Cooldown | Self::Several => topology != Topology::Sentinel,
            Self::Read => topology != Topology::Sentinel,
            Self::Permits | Self::Downgrade => topology.is_alone() || topology == Topology::Cluster,
            // On PostgreSQL all of them write one row, one behind the other.
            Self::Crowd => topology.is_alone() && topology != Topology::Postgres,
            Self::Operate => !matches!(topology, Topology::Sentinel | Topology::Cluster),
            Self::PassOn => topology.is_alone(),
        }
    }

    /// The kinds of work of a history: plain locks alone in every third one, and else up to three others.
    pub(super) fn draw(rng: &mut Rng, topology: Topology) -> Vec<Self> {
        let group = match topology {
            // It offers none of the others.
            Topology::Cluster => rng.pick(&Self::GROUPS[2..]),
            _ => rng.pick(Self::GROUPS),
        };
        let offered = group.iter().filter(|verb| verb.is_on(topology));
        let offered: Vec<Self> = offered.copied().collect();
        if Self::Crowd.is_on(topology) && rng.percent(1) {
            return vec![Self::Crowd];
        }
        if offered.is_empty() || rng.percent(33) {
            return vec![Self::Acquire];
        }
        let mut verbs: Vec<Self> = (0..rng.between(1, 3)).map(|_| rng.pick(&offered)).collect();
        if rng.percent(75) {
            verbs.push(Self::Acquire);
        }
        verbs.sort_unstable();
        verbs.dedup();
        verbs
    }
}

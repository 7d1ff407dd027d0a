//! Which node has which slot, as the nodes report it.

use redis::Value;

use crate::base::clock::Moment;
use crate::store::Failure;
use crate::store::redis::topology::nodes::ServerId;
use crate::store::redis::topology::refresh::FORGOTTEN;
use crate::store::redis::wire::reply::{field, number, text};
use crate::store::redis::wire::send_error::failure;
use crate::store::redis::wire::slots::HashSlot;

#[derive(Clone)]
pub(super) struct Map {
    owners: Vec<Option<ServerId>>,
    /// The masters, each once.
    pub(super) masters: Vec<ServerId>,
    /// The nodes that answered at the last look and reported a cluster that serves.
    pub(super) live: Vec<ServerId>,
}

impl Map {
    pub(super) fn empty() -> Self {
        Self {
            owners: vec![None; HashSlot::COUNT],
            masters: Vec::new(),
            live: Vec::new(),
        }
    }

    pub(super) fn owner(&self, slot: HashSlot) -> Option<ServerId> {
        self.owners[slot.index()]
    }

    pub(super) fn is_shared_as(&self, other: &Self) -> bool {
        self.owners == other.owners
    }

    /// Notes a node's report that another node has the slot.
    pub(super) fn set_owner(&mut self, slot: HashSlot, owner: ServerId) {
        self.owners[slot.index()] = Some(owner);
        self.add_master(owner);
    }

    fn add_master(&mut self, master: ServerId) {
        if !self.masters.contains(&master) {
            self.masters.push(master);
        }
    }

    /// `shares`: the owners of ranges of slots. `live`: the nodes that answered.
    pub(super) fn new(shares: &[Share<ServerId>], live: Vec<ServerId>) -> Self {
        let mut map = Self::empty();
        for share in shares {
            for owner in &mut map.owners[share.first.index()..=share.last.index()] {
                *owner = Some(share.owner);
            }
            map.add_master(share.owner);
        }
        map.live = live;
        map
    }
}

/// The newest configuration that was believed, so that a node that has missed a failover is not believed when
/// it is heard alone.
pub(super) struct Newest {
    /// Whether the reporting node took the cluster for one that serves, and the epoch.
    rank: (bool, u64),
    told: Moment,
}

impl Newest {
    pub(super) const NONE: Newest = Newest {
        rank: (false, 0),
        told: Moment(0),
    };

    /// Returns whether the map of a configuration is to be believed. An older one is when the newest was not reported
    /// for a while.
    pub(super) fn gives_way_to(&mut self, rank: (bool, u64), now: Moment) -> bool {
        let gives_way = rank >= self.rank || now.since(self.told) >= FORGOTTEN;
        if gives_way {
            (self.rank, self.told) = (rank, now);
        }
        gives_way
    }
}

/// A range of slots and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share<T> {
    pub(super) first: HashSlot,
    pub(super) last: HashSlot,
    pub(super) owner: T,
}

/// The report of one node about the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClusterReport {
    /// Whether the node takes the cluster for one that serves.
    pub(super) serves: bool,
    /// The epoch, raised whenever slots change hands by a failover.
    pub(super) epoch: u64,
    /// A share without a host belongs to the reporting node.
    pub(super) shares: Vec<Share<(Option<String>, u16)>>,
}

/// Reads the answers to `CLUSTER INFO` and `CLUSTER SLOTS`.
pub(super) fn said(answers: &[Value]) -> Result<ClusterReport, Failure> {
    let [info, slots] = answers else {
        return Err(Failure::not_understood());
    };
    for answer in answers {
        if let Value::ServerError(error) = answer {
            let failure = failure(error.clone().into());
            let alone = !failure.is_final() && error.code() == "ERR";
            return Err(if alone {
                Failure::misconfigured(
                    "a server of the URL is no node of a cluster; write redis://host:port for a \
                     server of its own",
                )
            } else {
                failure
            });
        }
    }
    let Value::Array(slots) = slots else {
        return Err(Failure::not_understood());
    };
    let shares = slots.iter().map(share).collect::<Option<Vec<_>>>();
    Ok(ClusterReport {
        serves: serves(info),
        epoch: field(info, "cluster_current_epoch")
            .and_then(|epoch| epoch.parse().ok())
            .unwrap_or(0),
        shares: shares.ok_or_else(Failure::not_understood)?,
    })
}

/// Returns whether the node takes the cluster for one that serves, by its answer to `CLUSTER INFO`.
pub(super) fn serves(info: &Value) -> bool {
    field(info, "cluster_state") == Some("ok")
}

/// First slot, last slot, master, replicas.
fn share(value: &Value) -> Option<Share<(Option<String>, u16)>> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [first, last, Value::Array(master), ..] = parts.as_slice() else {
        return None;
    };
    let [host, port, ..] = master.as_slice() else {
        return None;
    };
    let slots = (
        HashSlot::numbered(number(first)?)?,
        HashSlot::numbered(number(last)?)?,
    );
    let host = match host {
        // A node that does not know its own name yet.
        Value::Nil => None,
        host => text(host).filter(|host| !host.is_empty() && *host != "?"),
    };
    (slots.0.index() <= slots.1.index()).then_some(Share {
        first: slots.0,
        last: slots.1,
        owner: (host.map(str::to_owned), u16::try_from(number(port)?).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use redis::{ErrorKind, RedisError};

    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = Value::Array(vec![host, Value::Int(port), bulk("id")]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master])
    }

    #[test]
    fn what_a_node_says_is_who_has_which_slots() {
        let info = bulk("cluster_state:ok\r\ncluster_current_epoch:6\r\n");
        let slots = Value::Array(vec![
            range(0, 8191, bulk("10.0.0.1"), 7000),
            range(8192, 16383, Value::Nil, 7001),
        ]);
        let said = said(&[info, slots]).unwrap();
        assert!(said.serves);
        assert_eq!(said.epoch, 6);
        assert_eq!(said.shares[0].owner, (Some("10.0.0.1".to_owned()), 7000));
        assert_eq!(said.shares[1].owner, (None, 7001));
        let shares: Vec<_> = said
            .shares
            .iter()
            .zip([ServerId(3), ServerId(5)])
            .map(|(share, owner)| Share {
                first: share.first,
                last: share.last,
                owner,
            })
            .collect();
        let mut map = Map::new(&shares, vec![]);
        let slot = |number| HashSlot::numbered(number).unwrap();
        assert_eq!(map.owner(slot(8191)), Some(ServerId(3)));
        assert_eq!(map.owner(slot(8192)), Some(ServerId(5)));
        map.set_owner(slot(8191), ServerId(5));
        assert_eq!(map.owner(slot(8191)), Some(ServerId(5)));
        assert_eq!(map.owner(slot(8190)), Some(ServerId(3)));
    }

    #[test]
    fn a_node_that_has_missed_a_failover_is_not_believed_even_if_it_alone_is_heard() {
        let mut newest = Newest::NONE;
        let begun = Moment(1_000_000_000);
        let mut believed =
            |serves, epoch, later| newest.gives_way_to((serves, epoch), begun + later);
        assert!(believed(true, 5, FORGOTTEN / 8));
        assert!(believed(true, 6, FORGOTTEN / 4));
        assert!(!believed(true, 5, FORGOTTEN / 2), "it is older");
        assert!(!believed(false, 7, FORGOTTEN), "it is cut off");
        assert!(believed(true, 6, FORGOTTEN), "as before");
        assert!(!believed(true, 5, FORGOTTEN * 3 / 2));
        assert!(believed(true, 0, FORGOTTEN * 2), "set up anew");
        assert!(believed(true, 1, FORGOTTEN * 2));
    }

    #[test]
    fn an_answer_that_is_not_understood_changes_nothing() {
        let info = bulk("cluster_state:ok\r\n");
        for strange in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(0, 16384, bulk("a"), 1)]),
            Value::Array(vec![range(7, 6, bulk("a"), 1)]),
            Value::Array(vec![range(0, 1, bulk("a"), 70_000)]),
        ] {
            assert!(said(&[info.clone(), strange]).is_err());
        }
        let error = RedisError::from((ErrorKind::Io, "unused"));
        assert!(!failure(error).is_final());
    }
}

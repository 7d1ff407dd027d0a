//! Moves a slot of a cluster from one node to another, step by step.

use std::sync::{Mutex, PoisonError};

use lock_tests::{RedisCluster, RedisServer, wait};

/// The migration of all keys of the tag's slot from their node to another.
pub(crate) struct Move<'a> {
    cluster: &'a RedisCluster,
    slot: String,
    pub(crate) from: &'a RedisServer,
    pub(crate) to: &'a RedisServer,
    to_id: String,
}

impl<'a> Move<'a> {
    /// Begins the migration: both nodes know of it, and no key has moved yet.
    pub(crate) fn begin(cluster: &'a RedisCluster, tag: &str) -> Self {
        let from = cluster.master_of(tag);
        let masters = cluster.masters();
        let to = masters.into_iter().find(|node| node.port() != from.port());
        let to = to.expect("another master");
        let slot = cluster.slot(tag).to_string();
        to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from.id()]);
        let moving = Self {
            cluster,
            slot,
            from,
            to,
            to_id: to.id(),
        };
        moving.begins_again();
        moving
    }

    /// The node that has the slot keeps it. The other one is not told.
    pub(crate) fn is_given_up(&self) {
        self.from.cli(&["CLUSTER", "SETSLOT", &self.slot, "STABLE"]);
    }

    pub(crate) fn begins_again(&self) {
        self.from
            .cli(&["CLUSTER", "SETSLOT", &self.slot, "MIGRATING", &self.to_id]);
    }

    /// Moves the slot in one step, as Valkey 9 does it by itself. On other servers its keys move one by one.
    ///
    /// A node refuses the one kind of move during the other, so the cluster is the test's own.
    pub(crate) fn at_once(cluster: &'a RedisCluster, tag: &str) {
        let from = cluster.master_of(tag);
        let masters = cluster.masters();
        let to = masters.into_iter().find(|node| node.port() != from.port());
        let to = to.expect("another master");
        let (slot, id) = (cluster.slot(tag).to_string(), to.id());
        let moves = [
            "CLUSTER",
            "MIGRATESLOTS",
            "SLOTSRANGE",
            &slot,
            &slot,
            "NODE",
            &id,
        ];
        match from.try_cli(&moves) {
            Ok(_) => wait::until("the slot has moved, and the cluster is whole", || {
                cluster.looks_whole() && cluster.master_of(tag).port() == to.port()
            }),
            Err(error) if error.contains("nknown subcommand") => Move::begin(cluster, tag).end(),
            Err(error) => panic!("the slot does not move: {error}"),
        }
    }

    fn keys(&self) -> Vec<String> {
        let keys = self
            .from
            .cli(&["CLUSTER", "GETKEYSINSLOT", &self.slot, "1000"]);
        keys.lines().map(str::to_owned).collect()
    }

    /// Moves the keys that begin with `prefix`.
    pub(crate) fn keys_move(&self, prefix: &str) {
        let port = self.to.port().to_string();
        for key in self.keys() {
            if key.starts_with(prefix) {
                self.from
                    .cli(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"]);
            }
        }
    }

    /// Moves the rest of the keys, and the slot itself.
    ///
    /// Only one migration ends at a time.
    ///
    /// At its end the epoch of the target node rises, for all slots that this node still claims. Among them
    /// could be a slot that another migration has just taken from it. The node would get that slot back, and
    /// the other node would delete the slot's keys.
    pub(crate) fn end(self) {
        static ENDING: Mutex<()> = Mutex::new(());
        let _alone = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
        let given = ["CLUSTER", "SETSLOT", &self.slot, "NODE", &self.to_id];
        let is_told = |node: &RedisServer| node.try_cli(&given).is_ok();
        // The command is repeated until all nodes agree, because an older message of a node may arrive after
        // it.
        wait::until(
            "the slot is where it should be, and the cluster whole",
            || {
                self.keys_move("");
                self.keys().is_empty()
                    && is_told(self.to)
                    && is_told(self.from)
                    && self.cluster.masters().into_iter().all(is_told)
                    && self.cluster.looks_whole()
            },
        );
    }
}

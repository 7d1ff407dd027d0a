//! Tests a master that sentinels replace: its locks, its waiters and new requests meanwhile.

mod epochs;
mod failover;
mod hanging;
mod lock_all;
mod mistakes;
mod operator;
mod partition;
mod pinged;
mod tickets;
mod waiting;

use crate::conformance::Watched;
use crate::steps::{its_turn, kind, long, manager, once, queued, refused, taken, waits};
use lock_tests::{RedisServer, ReplicaSet, Sentinels, wait};

impl Watched {
    /// Starts servers of one test, whose sentinels soon take a server for dead.
    fn start() -> Watched {
        let set = ReplicaSet::start(2);
        let sentinels = Sentinels::watch(&set, 3);
        Watched { set, sentinels }
    }

    fn master(&self) -> &RedisServer {
        self.set.at(self.sentinels.master())
    }

    /// Cuts the replicas off, so that they keep what they have.
    fn cut_replicas_off(&self) {
        for replica in self.set.replicas() {
            replica.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        }
    }

    /// Kills the master, and waits until a replica has its place.
    ///
    /// The sentinels accept a replica without its master, because its data is not older than theirs.
    async fn master_dies(&self) {
        let first = self.master();
        first.kill();
        wait::eventually("another server is the master", async || {
            self.sentinels.master() != first.address()
        })
        .await;
    }

    /// Replaces the living master by a replica.
    ///
    /// The old master acts as a master for some more seconds, until the sentinels make it a replica.
    async fn fail_over(&self) {
        let first = self.sentinels.master();
        self.sentinels.fail_over();
        wait::eventually("another server is the master", async || {
            let mut sentinels = self.sentinels.servers().iter();
            sentinels.all(|sentinel| sentinel.master_of(Sentinels::SERVICE) != first)
        })
        .await;
    }
}

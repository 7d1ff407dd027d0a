//! Tests a master that sentinels replace: its locks, its waiters and new requests meanwhile.

mod epochs;
mod failover;
mod hanging;
mod mistakes;
mod partition;
mod pinged;
mod tickets;
mod waiting;

use crate::conformance::Watched;
use crate::steps::{its_turn, long, manager, refused, taken};
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

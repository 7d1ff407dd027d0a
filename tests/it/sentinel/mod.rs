//! A master that sentinels replace: what becomes of locks, of those who wait, and of those who ask
//! meanwhile.

mod epochs;
mod failover;
mod hanging;
mod mistakes;
mod partition;
mod waiting;

use crate::conformance::Watched;
use crate::steps::{its_turn, long, manager, refused, taken};
use lock_tests::{RedisServer, ReplicaSet, Sentinels, wait};

impl Watched {
    /// Of a test's own, and quick to take a server for dead.
    fn start() -> Watched {
        let set = ReplicaSet::start(2);
        let sentinels = Sentinels::watch(&set, 3);
        Watched { set, sentinels }
    }

    fn master(&self) -> &RedisServer {
        self.set.at(self.sentinels.master())
    }

    /// A replica takes the living master's place. That goes on for some seconds, until the sentinels
    /// tell it otherwise.
    async fn fail_over(&self) {
        let first = self.sentinels.master();
        self.sentinels.fail_over();
        wait::eventually("another is the master", async || {
            let mut sentinels = self.sentinels.servers().iter();
            sentinels.all(|sentinel| sentinel.master_of(Sentinels::SERVICE) != first)
        })
        .await;
    }
}

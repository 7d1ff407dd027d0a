//! A master that sentinels replace: what becomes of locks, of those who wait, and of those who ask
//! meanwhile.

mod failover;
mod mistakes;
mod partition;
mod waiting;

use std::time::Duration;

use crate::conformance::Watched;
use lock_core::LockManager;
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

/// Patient enough for a machine that is busy with the other tests.
async fn manager(url: &str) -> LockManager {
    let builder = LockManager::builder(url).operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

fn long() -> Duration {
    Duration::from_secs(60)
}

//! What only a real Redis can do to a lock: its network, its restarts, its refusals, its other
//! clients.

mod background;
mod batches;
mod channels;
mod copies;
mod covered;
mod fencing;
mod foreign;
mod frozen;
mod full;
mod hand_over;
mod late;
mod link;
mod mistakes;
mod namespaces;
mod passwords;
mod peers;
mod permissions;
mod processes;
mod pushes;
mod restarts;
mod runtimes;
mod slow;
mod stopped;
mod trips;
mod types;
mod undone;

pub(crate) use trips::{asked, counts};

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::Proxy;

use crate::steps::{Waiter, all_is_answered, its_turn, keys, kind, long, manager, taken};

/// A manager behind a proxy whose connections are all made already.
async fn warm(proxy: &Proxy, patience: Duration) -> LockManager {
    let builder = LockManager::builder(&proxy.redis_url()).operation_timeout(patience);
    let locks = builder.connect().await.expect("a manager");
    // The keeper's connection is there; this makes the one of the test's runtime. The very first
    // acquires may still find the scripts unknown.
    for _ in 0..2 {
        let guard = locks.lock("warm").acquire().await.expect("free");
        guard.release().await.expect("held");
    }
    locks
}

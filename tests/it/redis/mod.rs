//! Tests the effects that only a real Redis has on a lock.
//!
//! These are its network, its restarts, its refusals, and its other clients.

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
mod leaders;
mod link;
mod lock_all;
mod lock_all_processes;
mod mistakes;
mod namespaces;
mod operator;
mod passwords;
mod peers;
mod permissions;
mod ping;
mod processes;
mod pushes;
mod record_processes;
mod records;
mod remembered;
mod restarts;
mod runtimes;
mod schedules;
mod scripts;
mod shares;
mod slow;
mod stopped;
mod tickets;
mod trips;
mod types;
mod undone;
mod watching;

pub(crate) use trips::{asked, counts};

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{Proxy, RedisServer};

use crate::steps::{
    all_is_answered, drains, is_refused, its_turn, keys, kind, long, manager, once, queued, served,
    served_both, taken, waits,
};

/// Makes a manager behind a proxy whose connections all exist already.
async fn warm(proxy: &Proxy, patience: Duration) -> LockManager {
    let builder = LockManager::builder(&proxy.redis_url()).operation_timeout(patience);
    let locks = builder.connect().await.expect("a manager");
    // The keeper's connection exists. The loop makes that of the test's runtime. The very first
    // acquires may still find the scripts unknown.
    for _ in 0..2 {
        let guard = locks.lock("warm").acquire().await.expect("free");
        guard.release().await.expect("held");
    }
    locks
}

/// Starts a server of one test, and makes a manager as [`warm`] does, behind a proxy.
async fn proxied(patience: Duration) -> (RedisServer, Proxy, LockManager) {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, patience).await;
    (server, proxy, locks)
}

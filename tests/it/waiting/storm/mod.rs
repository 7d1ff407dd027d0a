//! Tests very many contenders for one lock under all kinds of faults.
//!
//! A ledger outside the processes records their claims and compares them at the end. There are
//! never two owners, fencing tokens rise, every waiter is served, and no key is left in Redis.
//!
//! `LOCK_TESTS_WAITING` sets the number of faults, and `LOCK_TESTS_SEED` their seed.

mod network;
mod processes;
mod taker;

use lock_core::{LockManager, Wait};
use lock_tests::{RedisServer, wait};
use tokio::time::timeout;

use crate::steps::drains;
use taker::{TTL, takes};

fn number(variable: &str, default: u64) -> u64 {
    let told = std::env::var(variable);
    told.map_or(default, |it| it.parse().expect("a number"))
}

/// Returns the number of faults.
fn acts() -> u64 {
    number("LOCK_TESTS_WAITING", 150)
}

fn seed() -> u64 {
    number("LOCK_TESTS_SEED", 1)
}

/// Waits until the keys of killed processes are gone, with the next release or by their ttl.
async fn nothing_stays(server: &RedisServer) {
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    wait::eventually("no key is left", async || {
        let acquire = locks.lock("k").ttl(TTL).wait(Wait::Forever).acquire();
        let guard = timeout(wait::PATIENCE, acquire)
            .await
            .expect("the lock is granted");
        guard.expect("free").release().await.expect("held");
        super::keys(server).is_empty()
    })
    .await;
    drains(&locks).await;
    drop(locks);
    wait::eventually("only the asking client is connected", async || {
        let clients = server.info("clients");
        clients.get("connected_clients").is_some_and(|it| it == "1")
    })
    .await;
    assert_eq!(server.cli(&["PUBSUB", "CHANNELS", "*"]), "");
}

//! Very many who want one lock, and everything that can happen to them at once. What they claim is
//! written down outside, and compared at the end: never two inside, fencing tokens rise, nobody is
//! forgotten, and nothing is left in Redis.
//!
//! `LOCK_TESTS_WAITING` says how many acts of mischief; `LOCK_TESTS_SEED` which.

mod network;
mod processes;
mod taker;

use lock_core::{LockManager, Wait};
use lock_tests::{RedisServer, wait};
use tokio::time::timeout;

use crate::ledger::Ledger;
use taker::{Dice, TTL, takes};

fn number(variable: &str, default: u64) -> u64 {
    let told = std::env::var(variable);
    told.map_or(default, |it| it.parse().expect("a number"))
}

/// How much is done to them.
fn acts() -> u64 {
    number("LOCK_TESTS_WAITING", 150)
}

fn seed() -> u64 {
    number("LOCK_TESTS_SEED", 1)
}

/// What is left of those that were killed goes with the next release, or by its ttl.
async fn nothing_stays(server: &RedisServer) {
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    wait::eventually("nothing is left", async || {
        let acquire = locks.lock("k").ttl(TTL).wait(Wait::Forever).acquire();
        let guard = timeout(wait::PATIENCE, acquire)
            .await
            .expect("not forgotten");
        guard.expect("free").release().await.expect("held");
        super::keys(server).is_empty()
    })
    .await;
    let left = locks.drain(wait::PATIENCE).await;
    assert!(left.is_complete(), "{left:?}");
    drop(locks);
    wait::eventually("nobody is connected but who asks", async || {
        let clients = server.info("clients");
        clients.get("connected_clients").is_some_and(|it| it == "1")
    })
    .await;
    assert_eq!(server.cli(&["PUBSUB", "CHANNELS", "*"]), "");
}

//! Tests sentinels that do not agree: one with an older configuration, and one that is far
//! away.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{Answer, Direction, FakeServer, Flow, Proxy, RedisServer, needs, wait};

use super::mistakes::naming;
use super::{manager, taken};
use crate::conformance::Watched;
use crate::failover::TTL;

fn says(server: &RedisServer, epoch: u64) -> Answer {
    Answer::Master {
        port: server.port(),
        epoch,
    }
}

fn url(sentinels: [&FakeServer; 2]) -> String {
    let [one, other] = sentinels.map(FakeServer::address);
    format!("redis-sentinel://{one},{other}?service=mymaster")
}

/// Waits until the sentinel was asked this many more times.
async fn is_asked(sentinel: &FakeServer, times: usize) {
    let asked = || {
        let commands = sentinel.commands();
        commands.iter().filter(|name| *name == "SENTINEL").count()
    };
    let before = asked();
    // Each refresh has two commands.
    wait::eventually("the sentinel is asked", async || {
        asked() >= before + 2 * times
    })
    .await;
}

async fn locks_on(locks: &LockManager, server: &RedisServer) -> bool {
    let Ok(guard) = locks.lock("where").acquire().await else {
        return false;
    };
    let there = server.get("lockkit:where").is_some();
    guard.release().await.is_ok() && there
}

#[tokio::test]
async fn a_manager_does_not_return_to_an_older_configuration_whose_master_still_acts_as_one() {
    needs!(redis);
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let knowing = FakeServer::after_handshake(says(&new, 6));
    let stale = FakeServer::after_handshake(says(&old, 5));
    let locks = manager(&url([&knowing, &stale])).await;
    let guard = taken(&locks, "held", TTL).await;
    assert!(new.get("lockkit:held").is_some());
    // Only the stale sentinel is left to answer.
    knowing.set(Answer::HangUp);
    is_asked(&stale, 8).await;
    assert!(locks_on(&locks, &new).await);
    assert!(guard.is_valid());
    assert_eq!(old.get("lockkit:held"), None);
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_sentinel_a_tenth_of_a_second_away_is_heard_beside_a_near_one() {
    needs!(redis);
    let watched = Watched::start();
    let first = watched.master();
    // A proxy does not delay the TCP handshake. Three trips of a tenth of a second are
    // therefore two of these.
    let far = Proxy::to(watched.sentinels.servers()[0].address());
    for direction in [Direction::Requests, Direction::Replies] {
        far.set(direction, Flow::Delay(Duration::from_millis(75)));
    }
    // The near sentinel has missed the coming failover, and never learns of it.
    let near = naming(first.port());
    let url = format!(
        "redis-sentinel://{},{}?service=mymaster",
        near.address(),
        far.address()
    );
    let locks = manager(&url).await;
    assert!(locks_on(&locks, first).await);
    watched.fail_over().await;
    let new = watched.master();
    wait::eventually("the far sentinel is heard", async || {
        locks_on(&locks, new).await
    })
    .await;
}

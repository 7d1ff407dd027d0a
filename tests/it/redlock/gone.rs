//! A minority that is gone costs nothing; a majority that is gone is an outage.

use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockGuard};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{Nodes, at_last, kind, long};

/// Long enough for a renewal on a busy machine, short enough to be waited for.
const TTL: Duration = Duration::from_secs(3);

/// How a server goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// SIGSTOP: its connections stay open, and nothing is answered.
    Stopped,
    /// `kill -9`.
    Killed,
}

impl Fate {
    fn befall(self, server: &RedisServer) {
        match self {
            Fate::Stopped => server.stop(),
            Fate::Killed => server.kill(),
        }
    }
}

/// It has been renewed: nothing else keeps it for longer than its ttl.
async fn outlives_its_ttl(guard: &LockGuard) {
    let held_for = guard.held_for();
    wait::eventually("it was renewed", async || guard.held_for() > held_for + TTL).await;
    assert!(guard.is_valid());
}

async fn two_of_five_are_not_missed_and_a_third_one_is(fate: Fate) {
    let nodes = Nodes::start(5);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let held = locks.lock("held").ttl(TTL).acquire().await.expect("free");
    wait::eventually("all have agreed", async || held.acks().granted() == 5).await;

    fate.befall(&nodes.0[1]);
    fate.befall(&nodes.0[4]);
    for locks in [&locks, &other] {
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        assert_eq!(kind(other.lock("held").acquire().await), ErrorKind::Busy);
        guard.release().await.expect("held");
    }
    outlives_its_ttl(&held).await;

    let third = Instant::now();
    let remaining = held.remaining();
    fate.befall(&nodes.0[2]);
    // Neither a lock that is held nor one that is free: too few can say.
    for key in ["held", "k"] {
        let refused = other.lock(key).ttl(TTL).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Unavailable, "{key}");
    }
    let lost = timeout(wait::PATIENCE, held.lost()).await;
    lost.expect("its time ends without a majority");
    assert!(
        third.elapsed() >= remaining,
        "silence ends no lock before its deadline"
    );
    let error = held.release().await.expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Lost);

    if fate == Fate::Stopped {
        for node in [1, 2, 4] {
            nodes.0[node].cont();
        }
        let guard = at_last(&other, "held", TTL).await;
        guard.release().await.expect("held");
        nodes.are_left_clean().await;
    }
}

#[tokio::test]
async fn two_of_five_that_are_stopped_are_not_missed_and_a_third_one_is() {
    needs!(redis);
    two_of_five_are_not_missed_and_a_third_one_is(Fate::Stopped).await;
}

#[tokio::test]
async fn two_of_five_that_are_killed_are_not_missed_and_a_third_one_is() {
    needs!(redis);
    two_of_five_are_not_missed_and_a_third_one_is(Fate::Killed).await;
}

#[tokio::test]
async fn what_a_stopped_server_has_of_a_released_lock_is_given_back_when_it_goes_on() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all have agreed", async || guard.acks().granted() == 3).await;
    nodes.0[0].stop();
    guard.release().await.expect("a majority has given it back");
    // And a question that it has not read yet.
    let guard = locks.lock("l").ttl(long()).acquire().await.expect("free");
    guard.release().await.expect("held");
    nodes.0[0].cont();
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_server_that_has_lost_a_held_lock_takes_it_again() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = locks.lock("k").ttl(TTL).acquire().await.expect("free");
    wait::eventually("all have agreed", async || guard.acks().granted() == 3).await;
    nodes.0[1].cli(&["DEL", "lockkit:k"]);
    wait::eventually("it has it again", async || {
        nodes.0[1].get("lockkit:k") == nodes.0[0].get("lockkit:k")
    })
    .await;
    nodes.0[2].cli(&["SET", "lockkit:k", "stranger"]);
    wait::eventually("a renewal has found out", async || {
        guard.acks().granted() == 2
    })
    .await;
    // Whoever has the key on a server is left alone.
    assert_eq!(nodes.0[2].get("lockkit:k").as_deref(), Some("stranger"));
    // The two that have it are the majority that renews it.
    outlives_its_ttl(&guard).await;
    guard.release().await.expect("held");
    nodes.0[2].cli(&["DEL", "lockkit:k"]);
    nodes.are_left_clean().await;
}

//! Tests that a missing minority costs nothing and that a missing majority is an outage.

use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockGuard};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{Nodes, at_last, held_by_all, kind, long, once};

/// A ttl long enough for a renewal on a busy machine, and short enough to wait for.
const TTL: Duration = Duration::from_secs(3);

/// The way in which a server fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// SIGSTOP: its connections stay open, and it answers nothing.
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

/// Checks that the lock is renewed, because only a renewal keeps it for longer than its ttl.
async fn outlives_its_ttl(guard: &LockGuard) {
    let held_for = guard.held_for();
    wait::eventually("the lock is renewed", async || {
        guard.held_for() > held_for + TTL
    })
    .await;
    assert!(guard.is_valid());
}

async fn two_missing_servers_of_five_are_no_outage_and_three_are(fate: Fate) {
    let nodes = Nodes::start(5);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let held = locks.lock("held").ttl(TTL).acquire().await.expect("free");
    wait::eventually("all servers have granted the lock", async || {
        held.acks().granted() == 5
    })
    .await;

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
    // Neither the held key nor the free one can be decided, because too few servers answer.
    for key in ["held", "k"] {
        let refused = other.lock(key).ttl(TTL).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Unavailable, "{key}");
    }
    let lost = timeout(wait::PATIENCE, held.lost()).await;
    lost.expect("the lease ends without a majority");
    assert!(
        third.elapsed() >= remaining,
        "missing answers end no lock before its deadline"
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
async fn two_stopped_servers_of_five_are_no_outage_and_three_are() {
    needs!(redis);
    two_missing_servers_of_five_are_no_outage_and_three_are(Fate::Stopped).await;
}

#[tokio::test]
async fn two_killed_servers_of_five_are_no_outage_and_three_are() {
    needs!(redis);
    two_missing_servers_of_five_are_no_outage_and_three_are(Fate::Killed).await;
}

#[tokio::test]
async fn the_vote_of_a_stopped_server_for_a_released_lock_is_undone_when_it_continues() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = held_by_all(&locks).await;
    nodes.0[0].stop();
    guard
        .release()
        .await
        .expect("a majority has released the lock");
    // The stopped server also gets an acquire that it has not read yet.
    once(&locks, "l").await;
    nodes.0[0].cont();
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_server_that_has_lost_a_held_lock_takes_it_again() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = locks.lock("k").ttl(TTL).acquire().await.expect("free");
    wait::eventually("all servers have granted the lock", async || {
        guard.acks().granted() == 3
    })
    .await;
    nodes.0[1].cli(&["DEL", "lockkit:k"]);
    wait::eventually("the server has the lock again", async || {
        nodes.0[1].get("lockkit:k") == nodes.0[0].get("lockkit:k")
    })
    .await;
    nodes.0[2].cli(&["SET", "lockkit:k", "stranger"]);
    wait::eventually("a renewal has noticed the loss", async || {
        guard.acks().granted() == 2
    })
    .await;
    // The renewal leaves the other client's key on a server alone.
    assert_eq!(nodes.0[2].get("lockkit:k").as_deref(), Some("stranger"));
    // The two servers that have the lock are the majority that renews it.
    outlives_its_ttl(&guard).await;
    guard.release().await.expect("held");
    nodes.0[2].cli(&["DEL", "lockkit:k"]);
    nodes.are_left_clean().await;
}

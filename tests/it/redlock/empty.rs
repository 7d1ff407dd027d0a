//! Tests servers that died and came back without their data.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Renew};
use lock_tests::{RedisServer, needs, wait};

use super::{Nodes, at_last, kind, long};

/// The time for which a server without data does not vote, and the ttl of the lock that it has
/// lost.
const MAX_TTL: Duration = Duration::from_secs(3);

#[tokio::test]
async fn servers_that_come_back_empty_do_not_vote() {
    needs!(redis);
    let nodes = Nodes::start(5);
    let locks = nodes.acquainted().await;
    let held = locks
        .lock("held")
        .ttl(long())
        .acquire()
        .await
        .expect("free");
    wait::eventually("all servers have granted the lock", async || {
        held.acks().granted() == 5
    })
    .await;
    nodes.0[0].restart_empty();
    nodes.0[3].restart_empty();
    // One manager knew the servers before, and the other did not.
    for locks in [locks, nodes.manager().await] {
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        wait::eventually("all voting servers have granted the lock", async || {
            guard.acks().granted() == 3
        })
        .await;
        assert_eq!(nodes.that_have("k"), [1, 2, 4]);
        guard.release().await.expect("held");
        wait::eventually("the lock is released", async || {
            nodes.that_have("k").is_empty()
        })
        .await;
    }
    // While two servers do not vote, a third one must not be missing.
    nodes.0[1].kill();
    let locks = nodes.manager().await;
    assert_eq!(
        kind(locks.lock("k").ttl(long()).acquire().await),
        ErrorKind::Unavailable
    );
    assert!(held.is_valid());
}

#[tokio::test]
async fn a_lock_that_two_servers_have_lost_is_not_granted_again_before_it_ends() {
    needs!(redis);
    let nodes = Nodes::start(5);
    let builder = || nodes.builder().max_ttl(MAX_TTL).default_ttl(MAX_TTL);
    let locks = builder().connect().await.expect("a manager");
    let other = builder().connect().await.expect("a manager");
    // The lock must be on three servers, so that the two that lose it would be part of a majority
    // without it.
    for node in [3, 4] {
        nodes.0[node].cli(&["SET", "lockkit:k", "stranger"]);
    }
    let request = locks.lock("k").ttl(MAX_TTL).renew(Renew::Off);
    let held = request.acquire().await.expect("a majority is free");
    assert_eq!(nodes.that_have("k").len(), 5);
    for node in [3, 4] {
        nodes.0[node].cli(&["DEL", "lockkit:k"]);
    }
    nodes.0[1].restart_empty();
    nodes.0[2].restart_empty();
    assert_eq!(nodes.that_have("k"), [0]);

    let next = at_last(&other, "k", MAX_TTL).await;
    assert!(!held.is_valid(), "two owners of one lock");
    assert!(next.fencing_token() > held.fencing_token());
    drop(next);

    // The two servers vote again when that time is over.
    wait::eventually("all five servers grant the lock", async || {
        let _guard = at_last(&other, "k", MAX_TTL).await;
        nodes.that_have("k").len() == 5
    })
    .await;
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn the_error_about_servers_that_do_not_vote_yet_gives_a_remedy_that_works() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let urls = || nodes.0.iter().map(|node| node.url());
    // The servers are new, and the first process does not set `assume_fresh`.
    let first = LockManager::quorum(urls())
        .connect()
        .await
        .expect("a manager");
    let refused = async |locks: &LockManager| {
        let error = locks
            .lock("k")
            .acquire()
            .await
            .expect_err("the servers do not vote");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        error.to_string()
    };
    refused(&first).await;
    // It is too late to set `assume_fresh` now, and the message does not claim otherwise.
    let second = nodes.manager().await;
    let message = refused(&second).await;
    for words in [
        "`assume_fresh` has no effect on a server that a process has met",
        "end all processes",
        "delete the namespace's key `!r`",
    ] {
        assert!(message.contains(words), "{message}");
    }
    // The test follows the message.
    drop((first, second));
    for node in &nodes.0 {
        wait::eventually("the processes have ended", async || {
            // The only client is the connection that asks.
            node.cli(&["CLIENT", "LIST"]).lines().count() == 1
        })
        .await;
        assert_eq!(node.cli(&["DEL", "lockkit:!r"]), "1");
    }
    let third = nodes.manager().await;
    let guard = third.lock("k").acquire().await.expect("the servers vote");
    guard.release().await.expect("held");
}

/// Returns the register in which a node keeps the numbers of the key `k`.
fn register(node: &RedisServer) -> String {
    let fields = node.cli(&["HKEYS", "lockkit:!r"]);
    let mut fields = fields
        .lines()
        .filter(|field| *field != "name" && *field != "opens");
    let field = fields.next().expect("a register").to_owned();
    assert!(fields.next().is_none(), "one key, one register");
    field
}

#[tokio::test]
async fn a_register_above_every_clock_is_a_mistake_and_one_of_three_costs_only_its_vote() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.manager().await;
    let guard = at_last(&locks, "k", long()).await;
    let before = guard.fencing_token();
    guard.release().await.expect("held");
    wait::eventually("all servers have a register", async || {
        let has = |node: &RedisServer| node.cli(&["HLEN", "lockkit:!r"]) == "3";
        nodes.0.iter().all(has)
    })
    .await;
    let too_high = format!("9999999999999998{:016x}/{:032x}", 1, 1);
    let spoil = |node: &RedisServer| {
        node.cli(&["HSET", "lockkit:!r", &register(node), &too_high]);
    };
    spoil(&nodes.0[0]);
    let guard = locks
        .lock("k")
        .ttl(long())
        .acquire()
        .await
        .expect("two of three");
    let after = u64::from(guard.fencing_token());
    assert!((u64::from(before)..9_000_000_000_000_000).contains(&after));
    guard.release().await.expect("held");
    spoil(&nodes.0[1]);
    let refused = locks.lock("k").ttl(long()).acquire().await;
    assert_eq!(kind(refused), ErrorKind::Misconfigured);
    nodes.are_left_clean().await;
}

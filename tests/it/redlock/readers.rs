//! Tests readers over several servers: their cost, and servers that are stopped, full, or have dead waiters.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::{RedisServer, needs, wait};

use super::{Nodes, kind, long};
use crate::steps::{Waiter, its_turn};

fn reader(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long()).read()
}

fn writer(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long())
}

async fn entered(request: LockRequest) -> LockGuard {
    let entered = request.try_acquire().await.expect("an answer");
    entered.expect("there is room")
}

async fn stands_on(guard: &LockGuard, servers: u32) {
    wait::eventually("the servers have the lock", async || {
        guard.acks().granted() == servers
    })
    .await;
}

#[tokio::test]
async fn readers_are_one_script_on_each_server_each_way() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    nodes.are_left_clean().await;
    let scripts = || {
        let counts = nodes.0.iter().map(RedisServer::commandstats);
        let scripts = counts.map(|it| it.get("evalsha").copied().unwrap_or(0));
        scripts.collect::<Vec<_>>()
    };
    let mut guards = Vec::new();
    for _ in 0..3 {
        nodes.0.iter().for_each(RedisServer::reset_stats);
        let guard = entered(reader(&locks)).await;
        stands_on(&guard, 3).await;
        assert_eq!(scripts(), [1, 1, 1]);
        guards.push(guard);
    }
    for guard in guards {
        nodes.0.iter().for_each(RedisServer::reset_stats);
        guard.release().await.expect("held");
        wait::eventually("all servers are asked", async || scripts() == [1, 1, 1]).await;
    }
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn the_token_of_a_writer_is_above_that_of_a_reader_ahead_of_all_clocks() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, others) = (nodes.acquainted().await, nodes.acquainted().await);
    let before = entered(writer(&others)).await;
    stands_on(&before, 3).await;
    nodes.raise_all_registers();
    let fence = u64::from(before.fencing_token());
    before.release().await.expect("held");
    nodes.are_left_clean().await;
    let reader = entered(reader(&locks)).await;
    let read = reader.fencing_token();
    assert!(u64::from(read) > fence + 4_000_000);
    reader.release().await.expect("held");
    nodes.are_left_clean().await;
    let after = entered(writer(&others)).await;
    assert!(after.fencing_token() > read);
    drop(after);
}

/// Starts a task that waits, and returns when so many waiters stand in the queues of a majority.
async fn waits(nodes: &Nodes, request: LockRequest, waiters: usize) -> Waiter {
    let waiter = tokio::spawn(request.wait(Wait::Forever).acquire());
    let queue = |node: &RedisServer| node.cli(&["ZRANGE", "lockkit:!q:{k}", "0", "-1"]);
    let stand = async || {
        let queues: Vec<String> = nodes.0.iter().map(queue).collect();
        let all: BTreeSet<&str> = queues.iter().flat_map(|queue| queue.lines()).collect();
        let in_two = |waiter: &&str| queues.iter().filter(|it| it.contains(waiter)).count() > 1;
        all.into_iter().filter(in_two).count() == waiters
    };
    wait::eventually("the waiters stand in the queues", stand).await;
    waiter
}

#[tokio::test]
async fn pushes_alone_let_in_the_readers_behind_a_writer_that_ends_or_gives_up() {
    needs!(redis);
    let nodes = Nodes::start(3);
    // The clock of the waiters stands still, so that only a push ends a wait.
    let stopped = || nodes.builder().clock(ManualClock::new());
    let locks = nodes.acquainted().await;
    let others = [
        nodes.acquainted_by(stopped()).await,
        nodes.acquainted_by(stopped()).await,
    ];
    nodes.are_left_clean().await;
    for ends in [true, false] {
        let before = if ends { writer(&locks) } else { reader(&locks) };
        let before = entered(before).await;
        stands_on(&before, 3).await;
        let in_line = if ends { 0 } else { 1 };
        let leaves = match ends {
            true => None,
            false => Some(waits(&nodes, writer(&locks), in_line).await),
        };
        let mut waiters = Vec::new();
        for place in 1..=4 {
            let of = &others[place % 2];
            waiters.push(waits(&nodes, reader(of), in_line + place).await);
        }
        let mut inside = Vec::new();
        match leaves {
            Some(waiter) => {
                waiter.abort();
                inside.push(before);
            }
            None => before.release().await.expect("held"),
        }
        for waiter in waiters {
            inside.push(its_turn(waiter).await);
        }
        assert!(inside.iter().all(|guard| guard.is_valid()));
        drop(inside);
        nodes.are_left_clean().await;
    }
}

#[tokio::test]
async fn pushes_alone_let_in_a_writer_behind_readers() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let stopped = nodes.builder().clock(ManualClock::new());
    let others = nodes.acquainted_by(stopped).await;
    nodes.are_left_clean().await;
    let readers = [entered(reader(&locks)).await, entered(reader(&locks)).await];
    for reader in &readers {
        stands_on(reader, 3).await;
    }
    let waiter = waits(&nodes, writer(&others), 1).await;
    for reader in readers {
        assert!(!waiter.is_finished());
        reader.release().await.expect("held");
    }
    drop(its_turn(waiter).await);
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_dead_writer_in_the_queues_keeps_no_reader_out() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, others) = (nodes.acquainted().await, nodes.acquainted().await);
    let first = entered(reader(&locks)).await;
    stands_on(&first, 3).await;
    let dead = format!("{:016x}/{:032x} 30000", 7, 7);
    for node in &nodes.0 {
        node.cli(&["ZADD", "lockkit:!q:{k}", "1", &dead]);
    }
    let second = entered(reader(&others)).await;
    stands_on(&second, 3).await;
    let queued = |node: &RedisServer| node.keys().iter().any(|key| key.starts_with("lockkit:!q"));
    assert!(!nodes.0.iter().any(queued), "the dead waiter is removed");
    drop((first, second));
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_server_that_was_stopped_takes_the_readers_when_it_goes_on() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let hasty = || nodes.builder().operation_timeout(Duration::from_secs(1));
    let locks = nodes.acquainted_by(hasty()).await;
    let others = nodes.acquainted_by(hasty()).await;
    nodes.are_left_clean().await;
    nodes.0[0].stop();
    let short = Duration::from_secs(3);
    let readers = [
        entered(reader(&locks).ttl(short)).await,
        entered(reader(&others).ttl(short)).await,
    ];
    assert!(readers.iter().all(|it| it.acks().granted() == 2));
    let refused = writer(&others).try_acquire().await;
    assert!(refused.expect("two servers answer").is_none());
    nodes.0[0].cont();
    for reader in &readers {
        stands_on(reader, 3).await;
    }
    // The two readers have a majority without the second server.
    nodes.0[1].kill();
    let refused = writer(&others).try_acquire().await;
    assert!(refused.expect("two servers answer").is_none());
    assert!(readers.iter().all(|reader| reader.is_valid()));
    drop(readers);
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_full_server_lets_no_reader_in_and_a_majority_does() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, others) = (nodes.acquainted().await, nodes.acquainted().await);
    nodes.are_left_clean().await;
    let fill = |node: usize| nodes.0[node].cli(&["CONFIG", "SET", "maxmemory", "1"]);
    fill(0);
    let first = entered(reader(&locks)).await;
    let second = entered(reader(&others)).await;
    for guard in [&first, &second] {
        assert_eq!(guard.acks().granted(), 2);
        assert!(!nodes.that_have("k").contains(&0));
    }
    fill(1);
    let refused = reader(&locks).try_acquire().await;
    assert_eq!(kind(refused), ErrorKind::Unavailable);
    first.release().await.expect("a full server deletes");
    second.release().await.expect("a full server deletes");
    nodes.are_left_clean().await;
}

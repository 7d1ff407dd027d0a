//! Tests orders to free a key that the server refuses, repeats or finds outdated.

use std::time::Duration;

use lock_core::operator::{Forced, KeyState};
use lock_core::{ErrorKind, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{
    LOCK, MARK, QUEUE, answers, asked, clock, forced, holder, its_turn, kind, long, manager, mark,
    operator, seen, served, taken,
};

/// A token of a process that never was.
const DEAD: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn a_full_server_frees_nothing_and_the_holder_keeps_its_lock() {
    needs!(redis);
    let (server, locks) = served().await;
    let operator = operator(&server).await;
    let guard = taken(&locks, "k", long()).await;
    let holder = holder(&operator).await;
    let before = (server.get(LOCK), server.get(MARK));
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = forced(&operator, &holder).await;
    assert_eq!(kind(refused), ErrorKind::Unavailable);
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!((server.get(LOCK), server.get(MARK)), before);
    // A message behind the order would arrive before this answer.
    assert_eq!(seen(&operator).await.state(), KeyState::Held);
    assert!(guard.is_valid());
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_key_that_has_ended_since_it_was_seen_is_left_alone_with_its_mark() {
    needs!(redis);
    let server = RedisServer::start();
    let operator = operator(&server).await;
    for after in ["", "another client's"] {
        server.cli(&["SET", LOCK, DEAD, "PX", "60000"]);
        server.cli(&["SET", MARK, "5"]);
        let holder = holder(&operator).await;
        // It was evicted, or its ttl ran out.
        server.cli(&["DEL", LOCK]);
        if !after.is_empty() {
            server.cli(&["SET", LOCK, after, "PX", "60000"]);
        }
        let answer = forced(&operator, &holder).await.expect("an answer");
        assert_eq!(answer, Forced::Changed);
        assert_eq!(server.get(LOCK).unwrap_or_default(), after);
        assert_eq!(mark(&server), 5);
    }
}

#[tokio::test]
async fn an_order_whose_answer_is_lost_is_done_once() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = manager(&server.url()).await;
    let operator = super::super::warm(&proxy, Duration::from_secs(5)).await;
    let operator = operator.operator("ops@example");
    // The server learns the script.
    server.cli(&["SET", LOCK, DEAD, "PX", "60000"]);
    let dead = holder(&operator).await;
    let answer = forced(&operator, &dead).await.expect("an answer");
    assert_eq!(answer, Forced::Freed);
    let guard = taken(&locks, "k", long()).await;
    let holder = holder(&operator).await;
    proxy.set(Direction::Replies, Flow::Hold);
    let order = tokio::spawn(async move { forced(&operator, &holder).await });
    timeout(wait::PATIENCE, guard.lost())
        .await
        .expect("the order arrives");
    proxy.cut();
    proxy.pass();
    let next = locks.lock("k").ttl(long()).wait(long()).acquire().await;
    let next = next.expect("after the grace");
    let answer = order.await.expect("no panic");
    assert_eq!(
        kind(answer),
        ErrorKind::Unavailable,
        "the holder is gone, and nothing says why"
    );
    assert!(next.is_valid(), "the second copy finds another holder");
    next.release().await.expect("held");
}

#[tokio::test]
async fn dead_waiters_are_passed_over_when_a_key_is_freed() {
    needs!(redis);
    let server = RedisServer::start();
    let (operator, locks) = (operator(&server).await, manager(&server.url()).await);
    server.cli(&["SET", LOCK, DEAD, "PX", "60000"]);
    for number in 0..3_u64 {
        let waiting = format!("{number:016x}/{number:032x} 2000");
        server.cli(&["ZADD", QUEUE, &number.to_string(), &waiting]);
    }
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    wait::eventually("the waiter is seen", async || {
        seen(&operator).await.waiter_count() == 4
    })
    .await;
    let holder = holder(&operator).await;
    let answer = forced(&operator, &holder).await.expect("an answer");
    assert_eq!(answer, Forced::Freed);
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
async fn the_next_token_is_above_a_token_that_the_clock_has_not_reached() {
    needs!(redis);
    let server = RedisServer::start();
    let (operator, locks) = (operator(&server).await, manager(&server.url()).await);
    let ahead = clock(&server) + 3_600_000_000;
    server.cli(&["SET", MARK, &ahead.to_string()]);
    let guard = taken(&locks, "k", long()).await;
    assert!(u64::from(guard.fencing_token()) > ahead);
    // The mark is lost, as by a failover. Only the holder knows its token.
    server.cli(&["DEL", MARK]);
    answers(&operator).await;
    let holder = holder(&operator).await;
    let answer = forced(&operator, &holder).await.expect("an answer");
    assert_eq!(answer, Forced::Told);
    let next = locks.lock("k").ttl(long()).wait(long()).acquire().await;
    let next = next.expect("after the grace");
    // The holder may have passed the lease on up to 32 times.
    assert!(u64::from(next.fencing_token()) > u64::from(guard.fencing_token()) + 32);
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_key_of_another_type_is_a_mistake_and_is_left_unchanged() {
    needs!(redis);
    let server = RedisServer::start();
    let operator = operator(&server).await;
    server.cli(&["RPUSH", LOCK, "data"]);
    assert_eq!(kind(operator.inspect("k").await), ErrorKind::Misconfigured);
    server.cli(&["DEL", LOCK]);
    server.cli(&["SET", LOCK, DEAD, "PX", "60000"]);
    let holder = holder(&operator).await;
    server.cli(&["DEL", LOCK]);
    server.cli(&["RPUSH", LOCK, "data"]);
    let refused = forced(&operator, &holder).await;
    assert_eq!(kind(refused), ErrorKind::Misconfigured);
    assert_eq!(server.cli(&["LRANGE", LOCK, "0", "-1"]), "data");
}

#[tokio::test]
async fn a_key_without_an_end_can_be_freed() {
    needs!(redis);
    let server = RedisServer::start();
    let operator = operator(&server).await;
    server.cli(&["SET", LOCK, "set by hand"]);
    let holder = holder(&operator).await;
    assert_eq!(holder.remaining(), None);
    assert_eq!(seen(&operator).await.remaining(), None);
    let answer = forced(&operator, &holder).await.expect("an answer");
    assert_eq!(answer, Forced::Freed);
    assert_eq!(server.get(LOCK), None);
}

#[tokio::test]
async fn a_look_writes_nothing_and_is_one_script() {
    needs!(redis);
    let (server, locks) = served().await;
    let operator = locks.operator("ops@example");
    let guard = taken(&locks, "k", long()).await;
    seen(&operator).await;
    let before = server.all_keys();
    server.reset_stats();
    seen(&operator).await;
    let commands = asked(&server);
    assert_eq!(commands.get("evalsha"), Some(&1));
    for writes in ["set", "del", "zadd", "zrem", "pexpire", "pexpireat"] {
        assert_eq!(commands.get(writes), None, "{writes}");
    }
    assert_eq!(server.all_keys(), before);
    guard.release().await.expect("held");
}

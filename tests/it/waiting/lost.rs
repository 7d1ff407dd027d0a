//! What waiters count on, and is lost: scripts, the queue, a push, connections, all the server's data. It
//! costs them a bounded delay, and never the lock.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{FencingToken, LockManager, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::redis::asked;

use super::{Waiter, all_is_answered, its_turn, keys, long, manager, millis, on, queued};

/// Looks again by itself after that long, whatever it was told.
const LAST_RESORT: Duration = Duration::from_secs(30);

async fn waits(server: &RedisServer, locks: &LockManager, count: usize) -> Waiter {
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    queued(server, count).await;
    waiter
}

/// All are served, in whichever order they come.
async fn tokens_of(waiters: [Waiter; 2]) -> Vec<FencingToken> {
    let mut served = JoinSet::new();
    for waiter in waiters {
        served.spawn(async move {
            let guard = its_turn(waiter).await;
            let token = guard.fencing_token();
            guard.release().await.expect("held");
            token
        });
    }
    served.join_all().await
}

#[tokio::test]
async fn scripts_that_are_forgotten_while_somebody_waits_cost_nobody_anything() {
    needs!(redis);
    let server = RedisServer::start();
    let owner = manager(&server.url()).await;
    let mut guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let mut waiters = Vec::new();
    let mut managers = Vec::new();
    for count in 1..=4 {
        managers.push(manager(&server.url()).await);
        waiters.push(waits(&server, &managers[count - 1], count).await);
        server.cli(&["SCRIPT", "FLUSH"]);
    }
    for waiter in waiters {
        server.cli(&["SCRIPT", "FLUSH"]);
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
    }
    server.cli(&["SCRIPT", "FLUSH"]);
    guard.release().await.expect("held");
    wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_queue_that_is_deleted_costs_its_waiters_their_timer_of_last_resort_at_most() {
    needs!(redis);
    let server = RedisServer::start();
    let owner = manager(&server.url()).await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let clock = ManualClock::new();
    let (one, other) = (
        on(&clock, &server.url()).await,
        on(&clock, &server.url()).await,
    );
    let waiters = [
        waits(&server, &one, 1).await,
        waits(&server, &other, 2).await,
    ];
    assert_eq!(server.cli(&["DEL", "lockkit:!q:{k}"]), "1");
    guard.release().await.expect("held");
    assert_eq!(keys(&server), [""; 0], "nobody is known to wait");
    // Somebody who comes meanwhile does not lock them out.
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    clock.advance(LAST_RESORT);
    queued(&server, 2).await;
    guard.release().await.expect("held");
    assert_eq!(tokens_of(waiters).await.len(), 2);
}

#[tokio::test]
async fn a_lock_that_is_deleted_goes_to_its_waiters_when_its_owner_notices() {
    needs!(redis);
    for refuses in [false, true] {
        let server = RedisServer::start();
        let clock = ManualClock::new();
        let (owner, locks) = (
            on(&clock, &server.url()).await,
            manager(&server.url()).await,
        );
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        let waiter = waits(&server, &locks, 1).await;
        assert_eq!(server.cli(&["DEL", "lockkit:k"]), "1");
        if refuses {
            server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
            server.reset_stats();
        }
        // A renewal tells the owner, whose body has not ended.
        clock.advance(long() / 4);
        timeout(wait::PATIENCE, guard.lost()).await.expect("told");
        if refuses {
            wait::eventually("the queue could not be changed", async || {
                asked(&server).get("evalsha") > Some(&2)
            })
            .await;
            server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        }
        let next = its_turn(waiter).await;
        drop(guard);
        next.release().await.expect("held");
        wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
    }
}

#[tokio::test]
async fn a_push_that_is_swallowed_costs_the_one_it_was_for_its_timer_of_last_resort_at_most() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let clock = ManualClock::new();
    let (owner, deaf) = (
        manager(&server.url()).await,
        on(&clock, &proxy.redis_url()).await,
    );
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let ours = server.get("lockkit:k");
    let waiter = waits(&server, &deaf, 1).await;
    all_is_answered(&deaf).await;
    // The word arrives as nothing, on a connection that stays as it is.
    let heard = proxy.bytes(Direction::Replies);
    proxy.set(Direction::Replies, Flow::Replace(Vec::new()));
    guard.release().await.expect("held");
    let given = server.get("lockkit:k");
    assert!(given.is_some() && given != ours);
    wait::eventually("its grant has gone by", async || {
        server.get("lockkit:k").is_none()
    })
    .await;
    assert_eq!(proxy.bytes(Direction::Replies), heard);
    proxy.pass();
    assert!(!waiter.is_finished());
    clock.advance(LAST_RESORT);
    its_turn(waiter).await.release().await.expect("held");
}

/// The numbers of all clients of a server but the one that asks.
fn connections(server: &RedisServer) -> BTreeSet<String> {
    let clients = server.cli(&["CLIENT", "LIST"]);
    let others = clients
        .lines()
        .filter(|client| !client.contains(" cmd=client"));
    let number = |client: &str| {
        let number = client.strip_prefix("id=")?.split(' ').next()?;
        Some(number.to_owned())
    };
    others.filter_map(number).collect()
}

/// Whichever of its connections breaks, at the very moment at which the lock is released.
#[tokio::test]
async fn each_connection_of_a_waiter_may_be_killed_while_it_waits() {
    needs!(redis);
    let server = RedisServer::start();
    let owner = manager(&server.url()).await;
    let warm = owner.lock("k").ttl(long()).acquire().await.expect("free");
    warm.release().await.expect("held");
    let owners = connections(&server);
    let mut killed = 0;
    for before in [true, false] {
        for nth in 0.. {
            let locks = manager(&server.url()).await;
            let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
            let waiter = waits(&server, &locks, 1).await;
            let waiters: Vec<_> = connections(&server).difference(&owners).cloned().collect();
            let Some(number) = waiters.get(nth) else {
                guard.release().await.expect("held");
                its_turn(waiter).await.release().await.expect("held");
                break;
            };
            let kill = || assert_eq!(server.cli(&["CLIENT", "KILL", "ID", number]), "1");
            if before {
                kill();
                guard.release().await.expect("held");
            } else {
                // It has been given the lock, and may or may not have heard of it.
                guard.release().await.expect("held");
                kill();
            }
            killed += 1;
            its_turn(waiter).await.release().await.expect("held");
            drop(locks);
            wait::eventually("its connections are gone", async || {
                connections(&server) == owners
            })
            .await;
        }
    }
    assert!(killed >= 4, "of at least two, each twice: {killed}");
}

#[tokio::test]
async fn waiters_and_the_lock_they_wait_for_survive_the_loss_of_all_data() {
    needs!(redis);
    for restarts in [false, true] {
        let server = RedisServer::start();
        let (owner, one, other) = (
            manager(&server.url()).await,
            manager(&server.url()).await,
            manager(&server.url()).await,
        );
        let ttl = millis(1_200);
        let guard = owner.lock("k").ttl(ttl).acquire().await.expect("free");
        let waiters = [
            waits(&server, &one, 1).await,
            waits(&server, &other, 2).await,
        ];
        if restarts {
            server.restart_empty();
        } else {
            server.cli(&["FLUSHALL"]);
        }
        // Given away at once, as nobody knows of it: its owner finds out at its next renewal.
        timeout(wait::PATIENCE, guard.lost()).await.expect("told");
        let mut tokens = vec![guard.fencing_token()];
        tokens.extend(tokens_of(waiters).await);
        assert!(
            tokens.is_sorted_by(|before, after| before < after),
            "{tokens:?}"
        );
        drop(guard);
        wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
    }
}

/// No time passes for the owner, and its waiter's timer of last resort does not ring.
#[tokio::test]
async fn a_loss_of_all_data_is_heard_of_by_the_owner_and_by_its_waiters() {
    needs!(redis);
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let (owner, locks) = (
        on(&clock, &server.url()).await,
        manager(&server.url()).await,
    );
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&server, &locks, 1).await;
    all_is_answered(&locks).await;
    server.cli(&["FLUSHALL"]);
    timeout(wait::PATIENCE, guard.lost()).await.expect("told");
    let next = its_turn(waiter).await;
    assert!(next.fencing_token() > guard.fencing_token());
    drop(guard);
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_release_that_handed_the_lock_over_and_went_unanswered_is_a_release() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let (owner, locks) = (
        manager(&proxy.redis_url()).await,
        manager(&server.url()).await,
    );
    let take = async || owner.lock("k").ttl(long()).acquire().await.expect("free");
    // The server knows the script of such a release.
    let guard = take().await;
    let waiter = waits(&server, &locks, 1).await;
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    let guard = take().await;
    let waiter = waits(&server, &locks, 1).await;
    proxy.set(Direction::Replies, Flow::Hold);
    let release = tokio::spawn(guard.release());
    let next = its_turn(waiter).await;
    // Repeated, it finds another's key.
    proxy.cut();
    proxy.pass();
    let released = timeout(wait::PATIENCE, release).await.expect("answered");
    released.expect("no panic").expect("not taken for a loss");
    assert!(next.is_valid());
    next.release().await.expect("untouched");
}

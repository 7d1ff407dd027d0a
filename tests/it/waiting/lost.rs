//! Tests the loss of things on which waiters rely: scripts, the queue, connections, all the
//! server's data. Each loss costs a bounded delay, and never the lock.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::FencingToken;
use lock_core::test_util::ManualClock;
use lock_tests::{RedisServer, needs, wait};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::redis::asked;

use super::{
    Waiter, all_is_answered, its_turn, keys, long, manager, millis, on, once, queued, served, waits,
};

/// The time after which a waiter asks by itself in every case.
const LAST_RESORT: Duration = Duration::from_secs(30);

/// Waits until all are served, in any order.
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
async fn a_flush_of_the_scripts_while_waiters_wait_costs_nothing() {
    needs!(redis);
    let (server, owner) = served().await;
    let mut guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let mut waiters = Vec::new();
    let mut managers = Vec::new();
    for count in 1..=4 {
        managers.push(manager(&server.url()).await);
        waiters.push(waits(&server, &managers[count - 1], "k", count).await);
        server.cli(&["SCRIPT", "FLUSH"]);
    }
    for waiter in waiters {
        server.cli(&["SCRIPT", "FLUSH"]);
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
    }
    server.cli(&["SCRIPT", "FLUSH"]);
    guard.release().await.expect("held");
    wait::eventually("no key is left", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_deleted_queue_delays_its_waiters_at_most_by_their_timer_of_last_resort() {
    needs!(redis);
    let (server, owner) = served().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let clock = ManualClock::new();
    let (one, other) = (
        on(&clock, &server.url()).await,
        on(&clock, &server.url()).await,
    );
    let waiters = [
        waits(&server, &one, "k", 1).await,
        waits(&server, &other, "k", 2).await,
    ];
    assert_eq!(server.cli(&["DEL", "lockkit:!q:{k}"]), "1");
    guard.release().await.expect("held");
    assert_eq!(keys(&server), [""; 0], "the server knows no waiter");
    // A newcomer meanwhile does not lock the waiters out.
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    clock.advance(LAST_RESORT);
    queued(&server, "k", 2).await;
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
        let waiter = waits(&server, &locks, "k", 1).await;
        assert_eq!(server.cli(&["DEL", "lockkit:k"]), "1");
        if refuses {
            server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
            server.reset_stats();
        }
        // A renewal tells the owner, whose body has not ended, of the loss.
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
        wait::eventually("no key is left", async || keys(&server).is_empty()).await;
    }
}

/// Returns the ids of a server's connections to managers.
///
/// They speak RESP3. The connections of `redis-cli` do not, and the server may list one that has just ended.
fn connections(server: &RedisServer) -> BTreeSet<String> {
    let clients = server.cli(&["CLIENT", "LIST"]);
    let of_managers = clients
        .lines()
        .filter(|client| client.ends_with(" resp=3") || client.contains(" resp=3 "));
    let number = |client: &str| {
        let number = client.strip_prefix("id=")?.split(' ').next()?;
        Some(number.to_owned())
    };
    of_managers.filter_map(number).collect()
}

/// The test kills each connection in turn, at the very moment of the release.
#[tokio::test]
async fn each_connection_of_a_waiter_may_be_killed_while_it_waits() {
    needs!(redis);
    let (server, owner) = served().await;
    once(&owner, "k").await;
    let owners = connections(&server);
    let mut killed = 0;
    for before in [true, false] {
        for nth in 0.. {
            let locks = manager(&server.url()).await;
            let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
            let waiter = waits(&server, &locks, "k", 1).await;
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
                // The waiter has been given the lock, and may or may not have received the push.
                guard.release().await.expect("held");
                kill();
            }
            killed += 1;
            its_turn(waiter).await.release().await.expect("held");
            drop(locks);
            wait::eventually("the killed connections are closed", async || {
                connections(&server) == owners
            })
            .await;
        }
    }
    assert!(
        killed >= 4,
        "at least two connections are killed twice each: {killed}"
    );
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
            waits(&server, &one, "k", 1).await,
            waits(&server, &other, "k", 2).await,
        ];
        if restarts {
            server.restart_empty();
        } else {
            server.cli(&["FLUSHALL"]);
        }
        // The lock is granted again at once, because the server has lost it. Its owner notices that at
        // its next renewal.
        timeout(wait::PATIENCE, guard.lost()).await.expect("told");
        let mut tokens = vec![guard.fencing_token()];
        tokens.extend(tokens_of(waiters).await);
        assert!(
            tokens.is_sorted_by(|before, after| before < after),
            "{tokens:?}"
        );
        drop(guard);
        wait::eventually("no key is left", async || keys(&server).is_empty()).await;
    }
}

/// No time passes for the owner, and its waiter's timer of last resort does not fire.
#[tokio::test]
async fn a_loss_of_all_data_is_told_to_the_owner_and_to_its_waiters() {
    needs!(redis);
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let (owner, locks) = (
        on(&clock, &server.url()).await,
        manager(&server.url()).await,
    );
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&server, &locks, "k", 1).await;
    all_is_answered(&locks).await;
    server.cli(&["FLUSHALL"]);
    timeout(wait::PATIENCE, guard.lost()).await.expect("told");
    let next = its_turn(waiter).await;
    assert!(next.fencing_token() > guard.fencing_token());
    drop(guard);
    next.release().await.expect("held");
}

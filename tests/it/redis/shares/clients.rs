//! Tests shares beside other clients: foreign ones, processes that die, and a writer among many readers.

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{LockManager, Wait};
use lock_tests::{needs, wait};

use super::super::processes::{parent, process};
use super::{LOCK, entered, keys, long, permit, reader, taken};
use crate::steps::{is_refused, its_turn, queued, served, served_both, waits};

#[tokio::test]
async fn foreign_clients_and_shares_exclude_each_other() {
    needs!(redis);
    let (server, locks) = served().await;
    let takes = || server.cli(&["SET", LOCK, "stranger", "NX", "PX", "60000"]) == "OK";
    let one = entered(reader(&locks)).await;
    assert!(!takes(), "a lone share");
    let other = entered(reader(&locks)).await;
    assert!(!takes(), "two shares");
    one.release().await.expect("held");
    assert!(!takes(), "one of two is left");
    other.release().await.expect("held");
    assert!(takes());
    let refused = reader(&locks).try_acquire().await.expect("an answer");
    assert!(refused.is_none());
    // A share that waits for a foreign client polls, as a plain lock does.
    let waiter = tokio::spawn(permit(&locks, 5).wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || keys(&server).len() == 2).await;
    server.cli(&["DEL", LOCK]);
    drop(its_turn(waiter).await);
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn has_a_permit_until_it_is_killed() {
    let Some(locks) = parent().await else { return };
    let _guard = entered(permit(&locks, 2).ttl(Duration::from_secs(1))).await;
    println!("\nholding");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_share_of_a_killed_process_ends_alone() {
    needs!(redis);
    let (server, locks) = served().await;
    let child = "redis::shares::clients::has_a_permit_until_it_is_killed";
    let mut killed = process(child, &server);
    killed.says("holding");
    let short = Duration::from_millis(600);
    let alive = entered(permit(&locks, 2).ttl(short)).await;
    let limited = permit(&locks, 2).wait(Wait::Forever).acquire();
    let waiter = tokio::spawn(limited);
    wait::eventually("two shares and a waiter", async || keys(&server).len() == 3).await;
    killed.kill();
    // The permit fits as soon as the share of the killed process has run out, and the other one is renewed.
    let permit = its_turn(waiter).await;
    assert!(alive.is_valid() && permit.is_valid());
    drop(permit);
    let writer = waits(&server, &locks, "k", 1).await;
    alive.release().await.expect("it was renewed");
    drop(its_turn(writer).await);
}

#[tokio::test]
async fn a_plain_lock_in_another_process_serves_all_shares_that_wait() {
    needs!(redis);
    let (server, old, new) = served_both().await;
    // A plain lock ends by the script that knows no shares, as in an earlier version.
    let guard = taken(&old, "k", long()).await;
    let waiters: Vec<_> = (0..8)
        .map(|_| tokio::spawn(reader(&new).wait(Wait::Forever).acquire()))
        .collect();
    queued(&server, "k", 8).await;
    guard.release().await.expect("held");
    let mut readers = Vec::new();
    for waiter in waiters {
        readers.push(its_turn(waiter).await);
    }
    assert!(readers.iter().all(|reader| reader.is_valid()));
}

/// More readers than one call of the script lets in.
#[tokio::test]
async fn all_readers_of_many_processes_enter_when_a_writer_ends() {
    const PROCESSES: usize = 9;
    needs!(redis);
    let (server, locks) = served().await;
    for has_seen_shares in [false, true] {
        // The clock of the waiters stands still, so that only a push ends their waits.
        let clock = ManualClock::new();
        let mut managers = Vec::new();
        for _ in 0..PROCESSES {
            let others = LockManager::builder(&server.url()).clock(clock.clone());
            managers.push(others.connect().await.expect("a manager"));
        }
        if has_seen_shares {
            let reader = entered(reader(&managers[0])).await;
            is_refused(&locks, "k").await;
            reader.release().await.expect("held");
        }
        let guard = taken(&locks, "k", long()).await;
        let waiters: Vec<_> = (0..16 * PROCESSES)
            .map(|number| {
                let request = reader(&managers[number % PROCESSES]).wait(Wait::Forever);
                tokio::spawn(request.acquire())
            })
            .collect();
        queued(&server, "k", 16 * PROCESSES).await;
        guard.release().await.expect("held");
        let mut readers = Vec::new();
        for waiter in waiters {
            readers.push(its_turn(waiter).await);
        }
        for reader in readers {
            reader.release().await.expect("held");
        }
    }
}

#[tokio::test]
async fn a_writer_that_goes_on_as_a_reader_lets_the_waiting_readers_in_by_itself() {
    needs!(redis);
    let (server, locks) = served().await;
    // The clock of the waiters stands still, so that only a push ends their waits.
    let others = LockManager::builder(&server.url()).clock(ManualClock::new());
    let others = others.connect().await.expect("a manager");
    let guard = taken(&locks, "k", long()).await;
    let waiters: Vec<_> = (0..3)
        .map(|_| tokio::spawn(reader(&others).wait(Wait::Forever).acquire()))
        .collect();
    queued(&server, "k", 3).await;
    let guard = guard.downgrade().await.expect("held");
    for waiter in waiters {
        drop(its_turn(waiter).await);
    }
    assert!(guard.is_valid());
}

//! Tests the hand-over to a waiter that needs replicas. The releaser has written the key, so the
//! waiter writes it again before the lock counts.

use lock_core::{ErrorKind, Wait};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Apart, hasty, its_turn, long, manager, replica_set, waits};
use crate::steps;

#[tokio::test]
async fn a_lock_that_was_handed_over_is_on_the_replica_for_its_whole_ttl() {
    needs!(redis);
    let set = replica_set(1);
    let master = set.master();
    let (owner, locks) = (manager(master, 1).await, manager(master, 1).await);
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = steps::waits(master, &locks, "k", 1).await;
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;
    let there = set.servers()[1]
        .time_to_live("lockkit:k")
        .expect("the key lives");
    assert!(
        there > long() / 2,
        "the whole ttl and not only the grant: {there:?}"
    );
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_waiter_is_not_granted_a_lock_that_no_replica_has() {
    needs!(redis);
    let apart = Apart::start();
    let master = &apart.master;
    let (owner, locks) = (manager(master, 1).await, hasty(master, 1).await);
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = steps::waits(master, &locks, "k", 1).await;
    apart.between.black_hole();
    guard
        .release()
        .await
        .expect("a release waits for no replica");
    let answer = timeout(wait::PATIENCE, waiter).await.expect("in time");
    let error = answer
        .expect("no panic")
        .expect_err("no replica has the lock");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_lock_that_goes_from_task_to_task_waits_for_no_replica_again() {
    needs!(redis);
    let set = replica_set(1);
    let locks = manager(set.master(), 1).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let token = guard.fencing_token();
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    tokio::task::yield_now().await;
    let before = waits(set.master());
    drop(guard);
    let guard = timeout(wait::PATIENCE, waiter)
        .await
        .expect("the lock is passed on");
    let guard = guard.expect("no panic").expect("its turn");
    assert!(guard.fencing_token() > token);
    assert_eq!(
        waits(set.master()),
        before,
        "the replicas already have the lock"
    );
    guard.release().await.expect("held");
}

/// A process that has handed a key over checks it two seconds later. The process may have queued for the key
/// again with the same lease, because too few replicas had acknowledged its first acquire.
#[tokio::test]
async fn a_waiter_that_handed_the_key_over_itself_stays_in_the_queue() {
    needs!(redis);
    let set = replica_set(1);
    let master = set.master();
    let (other, locks) = (manager(master, 0).await, hasty(master, 1).await);
    let guard = other.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = steps::waits(master, &locks, "k", 1).await;
    set.servers()[1].stop();
    let second = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    // The waiter gets the key, gives it back for want of a replica, and queues again.
    guard.release().await.expect("held");
    let guard = timeout(wait::PATIENCE, second).await.expect("its turn");
    let guard = guard.expect("no panic").expect("handed over");
    steps::queued(master, "k", 1).await;
    set.servers()[1].cont();
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    assert_eq!(master.cli(&["ZCARD", "lockkit:!q:{k}"]), "1");
    guard.release().await.expect("held");
    let guard = timeout(wait::PATIENCE, waiter).await.expect("its turn");
    let guard = guard.expect("no panic").expect("handed over");
    guard.release().await.expect("held");
}

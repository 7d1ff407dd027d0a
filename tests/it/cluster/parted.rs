//! Tests a master that lives on, cut off from the other nodes or only from clients.

use std::time::Instant;

use lock_core::{ErrorKind, LockGuard, LockManager, Wait};
use lock_tests::{RedisServer, SplitCluster, needs, wait};
use tokio::time::timeout;

use super::{IMPATIENT, PATIENT, its_turn, long, taken};
use crate::failover::{Load, TTL, service_goes_on};
use crate::steps::{OUTLIVED, manager};

/// Returns a hash tag whose slot this node has.
fn tag_on(split: &SplitCluster, node: &RedisServer) -> String {
    let mut tags = (0..).map(|number| format!("{{tag {number}}}"));
    let found = tags.find(|tag| split.cluster().master_of(tag).port() == node.port());
    found.expect("a tag")
}

/// Watches the server and the guard until the guard is lost.
///
/// Whenever the server has given the key away, the guard must already know when it is asked after
/// the server.
async fn is_told_in_time(server: &RedisServer, guard: &LockGuard) {
    let name = format!("lockkit:{}", guard.key());
    let began = Instant::now();
    tokio::task::block_in_place(|| {
        loop {
            let there = server.time_to_live(&name).is_some();
            if !guard.is_valid() {
                break;
            }
            assert!(there, "the key is gone, and the guard is still valid");
            assert!(began.elapsed() < wait::PATIENCE, "the guard is never lost");
        }
    });
    let lost = timeout(wait::PATIENCE, guard.lost()).await;
    lost.expect("the guard's `lost` resolves");
}

/// Makes another manager wait for the lock, and hands the lock over to it.
async fn handed_over(split: &SplitCluster, guard: LockGuard, to: &LockManager) -> LockGuard {
    let waiter = to.lock(guard.key()).ttl(long()).wait(Wait::Forever);
    let mut waiter = tokio::spawn(waiter.acquire());
    let queue = format!("lockkit:!qt:{}", guard.key());
    let is_queued = wait::eventually("the waiter is queued", async || {
        assert!(guard.is_valid(), "a lock that is lost is not handed over");
        split.cluster().cli(&queue, &["EXISTS", &queue]) == "1"
    });
    tokio::select! {
        answer = &mut waiter => panic!("answered before the release: {answer:?}"),
        () = is_queued => {}
    }
    guard.release().await.expect("held");
    its_turn(waiter).await
}

async fn outage(locks: &LockManager, key: &str) {
    let request = locks.lock(key).acquire_timeout(TTL / 2);
    let answer = timeout(wait::PATIENCE, request.acquire()).await;
    let error = answer.expect("no hang").expect_err("no lock");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// Asks until the lock is granted.
///
/// Until then every answer must be that the lock is held, or that there is no answer.
async fn at_last(locks: &LockManager, key: &str) -> LockGuard {
    let mut granted = None;
    wait::eventually("the lock is granted", async || {
        match locks.lock(key).ttl(TTL).acquire().await {
            Ok(guard) => granted = Some(guard),
            Err(error) => {
                let expected = matches!(error.kind(), ErrorKind::Busy | ErrorKind::Unavailable);
                assert!(expected, "{error:?}");
            }
        }
        granted.is_some()
    })
    .await;
    granted.expect("granted")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_master_is_cut_off_its_locks_can_be_taken_as_soon_as_there_is_another() {
    needs!(redis);
    let split = SplitCluster::start(IMPATIENT);
    let tag = tag_on(&split, split.first());
    // There is load on both sides. Clients on the first master's side continue there until it stops
    // by itself.
    let (url, inside) = (split.url(), split.inside_url());
    let load = Load::from_all([&url, &url, &inside], &tag).await;
    let serves = || {
        let serves = format!("serves{tag}");
        split.replica().try_cli(&["SET", &serves, "1"]).is_ok()
    };
    service_goes_on(load, || split.part(), serves).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_is_cut_off_with_a_master_is_told_of_the_loss_before_its_lease_ends_there() {
    needs!(redis);
    let split = SplitCluster::start(IMPATIENT);
    let key = tag_on(&split, split.first());
    // Whichever node has it in the end, it is on the other side.
    let beyond = tag_on(&split, &split.cluster().nodes()[1]);
    let inside = manager(&split.inside_url()).await;
    let outside = manager(&split.url()).await;
    let guard = taken(&inside, &key, TTL).await;
    split.part();
    is_told_in_time(split.first(), &guard).await;
    // The other clients continue with the replica, with higher fencing tokens.
    let next = at_last(&outside, &key).await;
    assert!(next.fencing_token() > guard.fencing_token());
    // Two masters claim the same slots.
    assert_eq!(split.first().role(), "master");
    assert_eq!(split.replica().role(), "master");
    outage(&inside, &key).await;
    outage(&inside, &beyond).await;
    drop(guard);
    next.release().await.expect("held");
    // After the partition, both sides have the same master.
    split.heal();
    let guard = at_last(&inside, &key).await;
    assert!(guard.is_valid());
    let refused = outside.lock(&*key).acquire().await.expect_err("held");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    guard.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_see_a_master_lose_only_its_locks_and_no_replica_replaces_it() {
    needs!(redis_7);
    let split = SplitCluster::start(PATIENT);
    let on = |index: usize| tag_on(&split, &split.cluster().nodes()[index]);
    let (unseen, seen) = (on(0), [on(1), on(2)]);
    let outside = manager(&split.url()).await;
    let inside = manager(&split.inside_url()).await;
    let lost = taken(&outside, &unseen, TTL).await;
    let mut kept = Vec::new();
    for key in &seen {
        kept.push(taken(&outside, key, OUTLIVED * 2).await);
    }
    split.part_clients();
    is_told_in_time(split.first(), &lost).await;
    outage(&outside, &unseen).await;
    // Clients that see the master continue with it, because nothing has changed for the nodes.
    let next = at_last(&inside, &unseen).await;
    assert!(next.fencing_token() > lost.fencing_token());
    next.release().await.expect("held");
    assert_eq!(split.first().role(), "master");
    // The other locks are renewed meanwhile, and handed over on any node that the managers listen
    // on.
    for (key, guard) in seen.iter().zip(kept) {
        let name = format!("lockkit:{key}");
        let ends = || split.cluster().cli(&name, &["PEXPIRETIME", &name]);
        let before = ends();
        wait::eventually("the lock is renewed", async || ends() != before).await;
        let guard = handed_over(&split, guard, &inside).await;
        let guard = handed_over(&split, guard, &outside).await;
        guard.release().await.expect("held");
    }
    split.heal();
    let guard = at_last(&outside, &unseen).await;
    guard.release().await.expect("held");
}

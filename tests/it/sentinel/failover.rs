//! Tests another server that becomes the master.

use lock_core::ErrorKind;
use lock_tests::{RedisServer, needs, wait};

use super::{long, manager, taken};
use crate::conformance::Watched;
use crate::failover::{Fate, Load, TTL, service_goes_on};

async fn goes_on(fate: Fate) {
    let watched = Watched::start();
    let load = Load::start(&watched.sentinels.url(), "k").await;
    let first = watched.master();
    let break_it = || match fate {
        Fate::Killed => first.kill(),
        Fate::Frozen => first.stop(),
        Fate::Replaced => watched.sentinels.fail_over(),
    };
    let before = first.address();
    // The test asks the server that the sentinels name, because a promoted replica serves before they
    // name it.
    let serves = || {
        let master = watched.sentinels.newest_master();
        master != before
            && watched
                .set
                .at(master)
                .try_cli(&["SET", "serves", "1"])
                .is_ok()
    };
    service_goes_on(load, break_it, serves).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_master_is_killed_locks_can_be_taken_as_soon_as_there_is_another() {
    needs!(redis);
    goes_on(Fate::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_master_is_frozen_locks_can_be_taken_as_soon_as_there_is_another() {
    needs!(redis);
    goes_on(Fate::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_master_gives_way_locks_can_be_taken_at_once() {
    needs!(redis);
    goes_on(Fate::Replaced).await;
}

#[tokio::test]
async fn a_lock_that_the_new_master_knows_is_kept_and_renewed_there() {
    needs!(redis_7);
    let watched = Watched::start();
    let locks = manager(&watched.sentinels.url()).await;
    let other = manager(&watched.sentinels.url()).await;
    // The ttl is longer than the time until the manager notices that the old master has given way.
    // Until then the old master renews the lock.
    let ttl = TTL * 5;
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    watched.set.caught_up();
    watched.fail_over().await;
    let ends = |server: &RedisServer| server.cli(&["PEXPIRETIME", "lockkit:k"]);
    let before = ends(watched.master());
    wait::eventually("the lock is renewed", async || {
        ends(watched.master()) != before
    })
    .await;
    assert!(guard.is_valid());
    let refused = other.lock("k").acquire().await.expect_err("held");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    guard.release().await.expect("held");
    assert_eq!(watched.master().get("lockkit:k"), None);
}

#[tokio::test]
async fn a_lock_that_no_replica_had_is_lost_and_its_fencing_token_is_below_that_of_the_next_owner()
{
    needs!(redis);
    let watched = Watched::start();
    let locks = manager(&watched.sentinels.url()).await;
    let other = manager(&watched.sentinels.url()).await;
    watched.cut_replicas_off();
    let guard = locks.lock("k").ttl(TTL).acquire().await.expect("free");
    let kept = taken(&locks, "kept", TTL * 5).await;
    watched.master_dies().await;
    guard.lost().await;
    wait::eventually("another owner has the lock", async || {
        match other.lock("k").ttl(long()).acquire().await {
            Ok(next) => {
                assert!(next.fencing_token() > guard.fencing_token());
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                false
            }
        }
    })
    .await;
    // The loss comes long before the deadline, because the next renewal finds that the new master does
    // not know the lock.
    kept.lost().await;
    assert_eq!(
        kept.release().await.expect_err("lost").kind(),
        ErrorKind::Lost
    );
}

#[tokio::test]
async fn a_former_master_that_still_acts_as_one_is_not_used() {
    needs!(redis);
    let watched = Watched::start();
    let locks = manager(&watched.sentinels.url()).await;
    let first = watched.master();
    watched.master_dies().await;
    // The sentinels make it a replica only after some seconds.
    first.start_again();
    assert_eq!(first.role(), "master");
    wait::eventually("the new master is found", async || {
        let other = manager(&watched.sentinels.url()).await;
        for locks in [&locks, &other] {
            let Ok(guard) = locks.lock("k").acquire().await else {
                return false;
            };
            assert_eq!(first.get("lockkit:k"), None);
            drop(guard);
        }
        true
    })
    .await;
}

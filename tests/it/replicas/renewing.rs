//! Tests that a renewal counts when enough replicas have it.

use std::time::Duration;

use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Apart, hasty, keys, replica_set, waits};

/// Returns a ttl of which a third exceeds a manager's wait for replicas here.
///
/// So the manager notices that they are away.
fn ttl() -> Duration {
    Duration::from_millis(4_800)
}

#[tokio::test]
async fn a_renewal_waits_for_the_replicas() {
    needs!(redis);
    let set = replica_set(2);
    let locks = hasty(set.master(), 2).await;
    let guard = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    let before = waits(set.master());
    wait::eventually("the lock is renewed", async || {
        waits(set.master()) >= before + 3 && guard.remaining() > ttl() / 2
    })
    .await;
    for replica in set.replicas() {
        assert!(replica.time_to_live("lockkit:k").expect("the key lives") >= guard.remaining());
    }
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_lock_whose_renewals_no_replica_has_is_lost_at_its_deadline_and_before_its_key_expires() {
    needs!(redis);
    let apart = Apart::start();
    let locks = hasty(&apart.master, 1).await;
    let guard = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    apart.between.black_hole();
    timeout(wait::PATIENCE, guard.lost()).await.expect("lost");
    // Only the master was asked to extend the lock, and it did.
    assert!(
        apart.master.get("lockkit:k").is_some(),
        "the owner knew of the loss before the key expired"
    );
    assert!(guard.release().await.is_err());
    wait::eventually("the lost lock is released", async || {
        keys(&apart.master).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_comes_back_before_the_deadline_saves_the_lock() {
    needs!(redis);
    let set = replica_set(1);
    let locks = hasty(set.master(), 1).await;
    let ttl = Duration::from_secs(9);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    set.servers()[1].stop();
    let before = waits(set.master());
    wait::eventually("renewals have noticed the missing replica", async || {
        waits(set.master()) >= before + 2
    })
    .await;
    let left = guard.remaining();
    assert!(left < ttl - ttl / 3, "no renewal counted: {left:?}");
    set.servers()[1].cont();
    wait::eventually("a renewal counts", async || guard.remaining() > left).await;
    guard.release().await.expect("held");
}

#[tokio::test]
async fn an_expiry_that_is_late_enough_is_written_again_for_the_replicas() {
    needs!(redis);
    let set = replica_set(1);
    let locks = hasty(set.master(), 1).await;
    let guard = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    // An earlier renewal without an answer would have left such an expiry. From Redis 7.2 on,
    // `WAIT` covers the writes of its own connection. Without such a write it would succeed,
    // even if no replica has the key.
    set.master().cli(&["PEXPIRE", "lockkit:k", "600000"]);
    let written = || set.master().commandstats()["set"];
    let before = written();
    wait::eventually("the key is written", async || written() >= before + 2).await;
    let left = set
        .master()
        .time_to_live("lockkit:k")
        .expect("the key lives");
    assert!(left > Duration::from_secs(500), "not shortened: {left:?}");
    guard.release().await.expect("held");
}

//! A renewal counts when enough replicas have it.

use std::time::Duration;

use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Apart, hasty, keys, replica_set, waits};

/// A third of it is more than a manager here waits for replicas: it is told that they are away.
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
    wait::eventually("it is renewed", async || {
        waits(set.master()) >= before + 3 && guard.remaining() > ttl() / 2
    })
    .await;
    for replica in set.replicas() {
        assert!(replica.time_to_live("lockkit:k").expect("it lives") >= guard.remaining());
    }
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_lock_whose_renewals_no_replica_has_is_lost_at_its_deadline_and_before_the_server_ends_it()
 {
    needs!(redis);
    let apart = Apart::start();
    let locks = hasty(&apart.master, 1).await;
    let guard = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    apart.between.black_hole();
    timeout(wait::PATIENCE, guard.lost()).await.expect("lost");
    // The master alone was asked to lengthen it, and did.
    assert!(
        apart.master.get("lockkit:k").is_some(),
        "its owner knew first"
    );
    assert!(guard.release().await.is_err());
    wait::eventually("what was lost is given back", async || {
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
    wait::eventually("renewals have found it missing", async || {
        waits(set.master()) >= before + 2
    })
    .await;
    let left = guard.remaining();
    assert!(left < ttl - ttl / 3, "none of them counted: {left:?}");
    set.servers()[1].cont();
    wait::eventually("one counts", async || guard.remaining() > left).await;
    guard.release().await.expect("held");
}

#[tokio::test]
async fn an_end_that_is_late_enough_is_written_once_more_for_the_replicas() {
    needs!(redis);
    let set = replica_set(1);
    let locks = hasty(set.master(), 1).await;
    let guard = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    // As an earlier renewal would have that went unanswered. From Redis 7.2 on `WAIT` is about the
    // writes of its own connection: without one it would say yes whatever replicas have.
    set.master().cli(&["PEXPIRE", "lockkit:k", "600000"]);
    let written = || set.master().commandstats()["set"];
    let before = written();
    wait::eventually("it is written", async || written() >= before + 2).await;
    let left = set.master().time_to_live("lockkit:k").expect("it lives");
    assert!(left > Duration::from_secs(500), "not shortened: {left:?}");
    guard.release().await.expect("held");
}

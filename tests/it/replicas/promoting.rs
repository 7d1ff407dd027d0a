//! Tests a replica that takes its master's place.

use lock_core::ErrorKind;
use lock_tests::{needs, wait};

use super::{Apart, hasty, long, manager};

#[tokio::test]
async fn a_promoted_replica_that_acknowledged_a_lock_grants_it_to_no_other_owner() {
    needs!(redis);
    let apart = Apart::start();
    let locks = manager(&apart.master, 1).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    // No later write reaches the replica.
    apart.between.black_hole();
    apart.promote();
    assert!(guard.is_valid());
    let others = manager(&apart.replica, 0).await;
    let error = others.lock("k").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let token = guard.fencing_token();
    apart.replica.cli(&["DEL", "lockkit:k"]);
    let next = others.lock("k").acquire().await.expect("free");
    assert!(next.fencing_token() > token);
}

#[tokio::test]
async fn without_acknowledgement_a_promoted_replica_grants_a_held_lock_again() {
    needs!(redis);
    let apart = Apart::start();
    let locks = manager(&apart.master, 0).await;
    apart.between.black_hole();
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    apart.promote();
    let others = manager(&apart.replica, 0).await;
    let second = others
        .lock("k")
        .acquire()
        .await
        .expect("the replica does not know the lock");
    assert!(
        guard.is_valid(),
        "two owners, which acknowledgements prevent"
    );
    // A resource that checks fencing tokens still refuses the first owner.
    assert!(second.fencing_token() > guard.fencing_token());
}

#[tokio::test]
async fn a_lock_that_was_never_granted_ends_by_its_ttl_on_a_promoted_replica() {
    needs!(redis);
    let apart = Apart::start();
    let locks = hasty(&apart.master, 1).await;
    drop(locks.lock("warm").acquire().await.expect("free"));
    // The replica receives the writes, but its acknowledgements are held.
    apart
        .between
        .set(lock_tests::Direction::Requests, lock_tests::Flow::Hold);
    let ttl = std::time::Duration::from_secs(3);
    let acquiring = tokio::spawn(locks.lock("k").ttl(ttl).acquire());
    wait::eventually("the replica has the lock", async || {
        apart.replica.get("lockkit:k").is_some()
    })
    .await;
    apart.promote();
    let error = acquiring
        .await
        .expect("no panic")
        .expect_err("not acknowledged");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let others = manager(&apart.replica, 0).await;
    let guard = others.lock("k").wait(wait::PATIENCE).acquire().await;
    guard
        .expect("the lock ran out")
        .release()
        .await
        .expect("held");
}

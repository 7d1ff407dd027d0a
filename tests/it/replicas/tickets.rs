//! Tests tickets that replicas must acknowledge.

use lock_core::ErrorKind;
use lock_tests::{needs, wait};

use super::{hasty, keys, long, manager, replica_set, taken, waits};

#[tokio::test]
async fn a_ticket_and_its_use_are_on_as_many_replicas_as_required_before_they_count() {
    needs!(redis);
    let set = replica_set(2);
    let locks = manager(set.master(), 2).await;
    for round in 0..10 {
        let key = format!("k{round}");
        let guard = taken(&locks, &key, long()).await;
        set.master().reset_stats();
        let ticket = guard.ticket(long()).await.expect("held");
        let name = format!("lockkit:{key}");
        let value = set.master().get(&name);
        assert!(set.replicas().iter().all(|one| one.get(&name) == value));
        let next = locks.resume(ticket).await.expect("unused");
        let value = set.master().get(&name);
        assert!(set.replicas().iter().all(|one| one.get(&name) == value));
        assert_eq!(waits(set.master()), 2);
        next.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_swap_that_a_stopped_replica_does_not_have_does_not_count_and_is_undone() {
    needs!(redis);
    let set = replica_set(2);
    let locks = hasty(set.master(), 2).await;
    let guard = taken(&locks, "k", long()).await;
    let other = taken(&locks, "other", long()).await;
    let ticket = other.ticket(long()).await.expect("held");
    set.servers()[1].stop();
    for answer in [
        guard.ticket(long()).await.map(drop),
        locks.resume(ticket).await.map(drop),
    ] {
        let error = answer.expect_err("a replica is missing");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    set.servers()[1].cont();
    wait::eventually("both locks are given back", async || {
        keys(set.master()).is_empty()
    })
    .await;
}

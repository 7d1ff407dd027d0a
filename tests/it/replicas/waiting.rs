//! Tests that waiting for replicas delays no other request.

use std::time::Duration;

use lock_tests::{needs, wait};

use super::{builder, long, manager, replica_set, taken, waiting, waits};

#[tokio::test]
async fn an_acquire_that_waits_for_a_replica_delays_no_release_and_no_renewal() {
    needs!(redis);
    let set = replica_set(1);
    // The acquire waits for 15 seconds, so an answer before that was not delayed.
    let patient = builder(&set.master().url(), 1).operation_timeout(Duration::from_secs(60));
    let locks = patient.connect().await.expect("a manager");
    let released = taken(&locks, "released", long()).await;
    let renewed = Duration::from_millis(4_500);
    let renewed = taken(&locks, "renewed", renewed).await;
    set.servers()[1].stop();
    let acquiring = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    wait::eventually("the acquire waits", async || {
        set.master().get("lockkit:k").is_some() && waiting(set.master()) >= 1
    })
    .await;
    released.release().await.expect("held");
    assert!(
        set.master().get("lockkit:k").is_some(),
        "the acquire still waits"
    );
    assert!(!acquiring.is_finished());
    wait::eventually(
        "a renewal was sent and waits beside the acquire",
        async || waiting(set.master()) == 2,
    )
    .await;
    assert!(!acquiring.is_finished());
    set.servers()[1].cont();
    let guard = acquiring.await.expect("no panic").expect("acknowledged");
    guard.release().await.expect("held");
    renewed.release().await.expect("held");
}

#[tokio::test]
async fn tasks_that_acquire_at_once_wait_together() {
    needs!(redis);
    let set = replica_set(1);
    let locks = manager(set.master(), 1).await;
    let before = waits(set.master());
    let tasks: Vec<_> = (0..200)
        .map(|index| {
            let request = locks.lock(format!("k{index}")).ttl(long());
            tokio::spawn(request.acquire())
        })
        .collect();
    let mut guards = Vec::new();
    for task in tasks {
        guards.push(task.await.expect("no panic").expect("free"));
    }
    let waits = waits(set.master()) - before;
    assert!((1..=100).contains(&waits), "{waits} for 200 locks");
    for index in 0..200 {
        let key = format!("lockkit:k{index}");
        assert!(set.servers()[1].get(&key).is_some(), "{key}");
    }
    for guard in guards {
        guard.release().await.expect("held");
    }
}

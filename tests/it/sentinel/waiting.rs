//! Tests waiters while the master changes.

use std::time::Duration;

use lock_tests::{needs, wait};

use super::{its_turn, long, manager, taken, waits};
use crate::conformance::{Watched, shared_watched};

#[tokio::test]
async fn a_waiter_is_told_by_the_new_master_of_a_release_there() {
    needs!(redis);
    let watched = Watched::start();
    let locks = manager(&watched.sentinels.url()).await;
    let other = manager(&watched.sentinels.url()).await;
    // The ttl is so long that only a push can tell the waiter in time.
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(watched.master(), &other, "k", 1).await;
    watched.set.caught_up();
    watched.fail_over().await;
    // The channels are those of both managers and of the waiter's runtime.
    wait::eventually("all are subscribed at the new master", async || {
        let channels = watched
            .master()
            .cli(&["PUBSUB", "CHANNELS", "lockkit:!m:*"]);
        channels.lines().count() == 3
    })
    .await;
    guard.release().await.expect("held");
    let next = its_turn(waiter).await;
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_waiter_asks_for_a_key_it_is_given_and_does_not_use_the_clock_of_another_master() {
    needs!(redis);
    let watched = shared_watched();
    let locks = manager(&watched.sentinels.url()).await;
    let other = manager(&watched.sentinels.url()).await;
    let guard = taken(&locks, "given", long()).await;
    let waiter = waits(watched.master(), &other, "given", 1).await;
    guard.release().await.expect("held");
    let next = its_turn(waiter).await;
    // A grant by push lasts two seconds at first. A lock that was asked for has its whole ttl.
    assert!(next.remaining() > Duration::from_secs(50));
    next.release().await.expect("held");
}

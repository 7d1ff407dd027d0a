//! Those who wait while the master changes.

use std::time::Duration;

use lock_core::Wait;
use lock_tests::{needs, wait};

use super::{its_turn, long, manager, taken};
use crate::conformance::{Watched, shared_watched};

#[tokio::test]
async fn a_waiter_is_told_by_the_new_master_of_a_release_there() {
    needs!(redis);
    let watched = Watched::start();
    let locks = manager(&watched.sentinels.url()).await;
    let other = manager(&watched.sentinels.url()).await;
    // So long that only a push can tell in time.
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    wait::eventually("it is queued", async || {
        watched.master().cli(&["EXISTS", "lockkit:!q:{k}"]) == "1"
    })
    .await;
    watched.set.caught_up();
    watched.fail_over().await;
    // Both managers do, and the waiter's runtime.
    wait::eventually("all listen to the new master", async || {
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
async fn a_key_that_is_given_to_a_waiter_is_asked_for_and_not_timed_from_another_masters_clock() {
    needs!(redis);
    let watched = shared_watched();
    let locks = manager(&watched.sentinels.url()).await;
    let other = manager(&watched.sentinels.url()).await;
    let guard = taken(&locks, "given", long()).await;
    let waiter = tokio::spawn(
        other
            .lock("given")
            .ttl(long())
            .wait(Wait::Forever)
            .acquire(),
    );
    let master = watched.master();
    wait::eventually("it is queued", async || {
        master.cli(&["EXISTS", "lockkit:!q:{given}"]) == "1"
    })
    .await;
    guard.release().await.expect("held");
    let next = its_turn(waiter).await;
    // A grant that is believed lasts two seconds for a start; one that was asked for, its whole ttl.
    assert!(next.remaining() > Duration::from_secs(50));
    next.release().await.expect("held");
}

//! Tests that a newer owner has a higher fencing token after any end of the older owner.

use std::time::Duration;

use lock_core::Renew;

use super::{Fixture, long, once};

pub(super) async fn tokens_rise_over_releases(store: &Fixture) {
    let managers = [store.manager().await, store.manager().await];
    let mut last = once(&managers[0], "k").await;
    for round in 0..50 {
        let token = once(&managers[round % 2], "k").await;
        assert!(token > last, "{token} after {last}");
        last = token;
    }
}

pub(super) async fn tokens_rise_over_an_expiry(store: &Fixture) {
    let locks = store.manager().await;
    let request = locks.lock("k").ttl(store.soon_over()).renew(Renew::Off);
    let guard = request.acquire().await.expect("free");
    guard.lost().await;
    let waiting = store.lock("k").await.wait(long()).acquire().await;
    assert!(waiting.expect("the lease ran out").fencing_token() > guard.fencing_token());
}

pub(super) async fn tokens_rise_over_a_deletion(store: &Fixture) {
    let guard = store.lock("k").await.acquire().await.expect("free");
    store.delete("k");
    assert!(once(&store.manager().await, "k").await > guard.fencing_token());
}

pub(super) async fn tokens_rise_over_a_cooldown(store: &Fixture) {
    let locks = store.manager().await;
    let cooling = locks.lock("k").cooldown(Duration::from_millis(20));
    let guard = cooling.acquire().await.expect("free");
    let token = guard.fencing_token();
    guard.release().await.expect("held");
    let next = locks.lock("k").wait(long()).acquire().await;
    assert!(next.expect("the cooldown is over").fencing_token() > token);
}

pub(super) async fn tokens_rise_when_an_acquire_supersedes_an_unsent_release(store: &Fixture) {
    let locks = store.manager().await;
    let mut last = None;
    for _ in 0..50 {
        let guard = locks
            .lock("k")
            .ttl(long())
            .acquire()
            .await
            .expect("the acquire supersedes the unsent release");
        assert!(Some(guard.fencing_token()) > last);
        last = Some(guard.fencing_token());
    }
}

pub(super) async fn a_token_is_below_two_to_the_53rd(store: &Fixture) {
    let token = u64::from(once(&store.manager().await, "k").await);
    assert!(token > 1_600_000_000_000_000 && token < 1 << 53, "{token}");
}

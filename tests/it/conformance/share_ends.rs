//! Tests how a share, or the wait for one, ends.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, LockRequest, Renew, Wait};
use lock_tests::wait;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::shares::{entered, permit, reader, refused, waits, writer};
use super::{Fixture, kind};
use crate::steps::its_turn;

pub(super) async fn a_permit_that_is_not_renewed_ends_alone(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let soon = store.soon_over();
    let dead = entered(permit(&locks, 2).ttl(soon).renew(Renew::Off)).await;
    let alive = entered(permit(&others, 2).ttl(store.renewable())).await;
    refused(permit(&locks, 2)).await;
    // It is let in when the dead owner's lease has run out.
    let next = permit(&locks, 2).wait(Wait::Forever).acquire();
    let next = timeout(wait::PATIENCE, next).await;
    let next = next.expect("in time").expect("room");
    assert!(!dead.is_valid() && alive.is_valid());
    refused(permit(&others, 2)).await;
    drop((dead, alive, next));
    store.is_left_clean().await;
}

pub(super) async fn a_reader_that_is_not_renewed_ends_alone(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let soon = store.soon_over();
    let dead = entered(reader(&locks).ttl(soon).renew(Renew::Off)).await;
    let alive = entered(reader(&others).ttl(store.renewable())).await;
    let lost = timeout(wait::PATIENCE, dead.lost()).await;
    lost.expect("its deadline comes");
    refused(writer(&locks)).await;
    assert!(!dead.is_valid() && alive.is_valid());
    alive.release().await.expect("held");
    // The writer enters when the dead owner's lease has ended in the store too.
    let next = writer(&locks).wait(Wait::Forever).acquire();
    let next = timeout(wait::PATIENCE, next).await;
    drop((dead, next.expect("in time").expect("free")));
    store.is_left_clean().await;
}

pub(super) async fn shares_are_renewed_beside_one_another(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let alone = entered(locks.lock("alone").ttl(ttl * 2).read()).await;
    let long = entered(reader(&locks).ttl(ttl * 2)).await;
    let short = entered(reader(&others).ttl(ttl)).await;
    tokio::time::sleep(ttl * 5 / 2).await;
    assert!(alone.is_valid(), "a share without others is renewed");
    assert!(long.is_valid() && short.is_valid());
    alone.release().await.expect("held");
    long.release().await.expect("held");
    tokio::time::sleep(ttl * 3 / 2).await;
    assert!(short.is_valid(), "the other one goes on");
    refused(writer(&locks)).await;
    short.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn all_shares_of_a_key_that_is_deleted_are_lost(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let one = entered(reader(&locks).ttl(ttl)).await;
    let other = entered(reader(&others).ttl(ttl)).await;
    store.delete("k");
    let next = entered(reader(&others)).await;
    for guard in [one, other] {
        let lost = timeout(wait::PATIENCE, guard.lost()).await;
        lost.expect("the next renewal notices");
        assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    }
    assert!(next.is_valid());
    drop(next);
    store.is_left_clean().await;
}

pub(super) async fn a_key_that_is_overwritten_is_lost_and_left_alone(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let one = entered(reader(&locks).ttl(ttl)).await;
    let other = entered(reader(&others).ttl(ttl)).await;
    store.overwrite("k");
    for guard in [one, other] {
        let lost = timeout(wait::PATIENCE, guard.lost()).await;
        lost.expect("the next renewal notices");
        assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    }
    assert_eq!(store.taken(), 1);
    refused(reader(&locks)).await;
}

pub(super) async fn a_waiting_permit_that_is_cancelled_leaves_nothing_and_blocks_no_other(
    store: &Fixture,
) {
    cancelled_waiters_leave_nothing_and_block_no_other(store, |locks| permit(locks, 2), 2).await;
}

pub(super) async fn a_waiting_reader_that_is_cancelled_leaves_nothing_and_blocks_no_other(
    store: &Fixture,
) {
    cancelled_waiters_leave_nothing_and_block_no_other(store, reader, 12).await;
}

async fn cancelled_waiters_leave_nothing_and_block_no_other(
    store: &Fixture,
    share: fn(&LockManager) -> LockRequest,
    in_store: usize,
) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    let mut waiters = Vec::new();
    for place in 1..=12 {
        let of = [&locks, &others][place % 2];
        waiters.push(waits(store, share(of), place.min(in_store)).await);
    }
    for waiter in waiters.iter().step_by(2) {
        waiter.abort();
    }
    guard.release().await.expect("held");
    // A share that has begun to wait a moment ago may be let in before it stands in its line, and so before earlier ones.
    let left = waiters.into_iter().skip(1).step_by(2);
    let mut left: JoinSet<_> = left.map(|it| async { drop(its_turn(it).await) }).collect();
    while let Some(ended) = left.join_next().await {
        ended.expect("its turn");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_permit_that_was_given_back_is_not_in_the_way_of_its_process(store: &Fixture) {
    what_was_given_back_is_not_in_the_way(store, |locks| permit(locks, 1)).await;
}

pub(super) async fn a_reader_that_was_given_back_is_not_in_the_way_of_its_process(store: &Fixture) {
    what_was_given_back_is_not_in_the_way(store, reader).await;
}

async fn what_was_given_back_is_not_in_the_way(
    store: &Fixture,
    share: fn(&LockManager) -> LockRequest,
) {
    let locks = store.manager().await;
    for _ in 0..30 {
        drop(entered(share(&locks)).await);
        entered(share(&locks)).await.release_in_background();
        drop(entered(writer(&locks)).await);
        drop(entered(reader(&locks)).await);
    }
    store.is_left_clean().await;
}

pub(super) async fn a_wait_for_a_permit_ends_in_time(store: &Fixture) {
    a_wait_ends_in_time(store, |locks| permit(locks, 5)).await;
}

pub(super) async fn a_wait_for_a_reader_ends_in_time(store: &Fixture) {
    a_wait_ends_in_time(store, reader).await;
}

async fn a_wait_ends_in_time(store: &Fixture, share: fn(&LockManager) -> LockRequest) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    for locks in [&others, &locks] {
        let ended = share(locks).wait(Duration::from_millis(80)).acquire().await;
        assert_eq!(kind(ended), ErrorKind::Busy);
    }
    assert!(guard.is_valid());
    drop(guard);
    store.is_left_clean().await;
}
